"""Knowledge that a task and its launcher share: names of tasks, the rendezvous, server status, audit records. No TensorFlow."""
