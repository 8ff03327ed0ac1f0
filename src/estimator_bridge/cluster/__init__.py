"""What a task and its launcher both know: names of tasks, the rendezvous, server status, audit records. No TensorFlow."""
