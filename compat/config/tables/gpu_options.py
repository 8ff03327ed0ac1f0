"""GPUOptions: memory, visibility and logical GPUs; other fields tune an allocator without public settings."""

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.tables.build import dropped, exact, manual, mapped
from estimator_bridge.compat.rules import Conversion, Fidelity, RuleTable

_ALLOCATOR = "devices.gpu_allocator"
_LIMITS = "devices.gpu_memory_limits"
_TUNING = "it tunes speed or memory inside the GPU runtime, has no public name in tf.config, and changes no result"


def _visible(value: str) -> Conversion:
    if ":" in value or not all(part.strip().isdigit() for part in value.split(",")):
        return Conversion({}, Fidelity.MANUAL, f"{value!r} is not a list of GPU numbers")
    gpus = tuple(int(part) for part in value.split(","))
    if list(gpus) == sorted(gpus):
        return Conversion({"devices.visible_gpus": gpus})
    note = f"the order {value!r} is lost: TensorFlow numbers visible GPUs as the machine does"
    return Conversion({"devices.visible_gpus": gpus}, Fidelity.APPROXIMATE, note)


def _allocator(value: str) -> Conversion:
    if value in {"BFC", "cuda_malloc_async"}:
        return Conversion({_ALLOCATOR: value})
    return Conversion({}, Fidelity.MANUAL, f"TF_GPU_ALLOCATOR does not take {value!r}; leave it out for the default, BFC")


def _virtual_devices(value: tuple[Mapping[str, Any], ...]) -> Conversion:
    limits = tuple(tuple(gpu.get("memory_limit_mb", ())) for gpu in value)
    if any(gpu.get("priority") or gpu.get("device_ordinal") for gpu in value):
        note = "priorities and device ordinals go into LogicalDeviceConfiguration(experimental_priority, experimental_device_ordinal)"
        return Conversion({_LIMITS: limits}, Fidelity.MANUAL, note)
    return Conversion({_LIMITS: limits})


def _virtual_devices_back(settings: Mapping[str, Any]) -> Any:
    return tuple({"memory_limit_mb": limits} for limits in settings.get(_LIMITS, ())) or None


GPU_OPTIONS = RuleTable(
    "gpu_options",
    "GPUOptions",
    (
        exact("allow_growth", "devices.memory_growth", "tf.config.experimental.set_memory_growth", True,
              note="For every visible GPU, before the first is used; TensorFlow does not take it together with logical GPUs."),
        mapped("visible_device_list", "tf.config.set_visible_devices", Fidelity.EXACT, _visible,
               lambda settings: ",".join(map(str, settings.get("devices.visible_gpus", ()))) or None, "0", "0,2",
               note="Numbers count the GPUs that CUDA_VISIBLE_DEVICES leaves, on both sides."),
        manual("per_process_gpu_memory_fraction", "tf.config.LogicalDeviceConfiguration(memory_limit=megabytes)",
               "LogicalDeviceConfiguration takes megabytes and tf.config does not give the size of a GPU: with "
               "--gpu-memory-mb the fraction becomes a limit."),
        mapped("allocator_type", "the environment variable TF_GPU_ALLOCATOR", Fidelity.APPROXIMATE, _allocator,
               lambda settings: settings.get(_ALLOCATOR), "BFC", "cuda_malloc_async",
               note="It is read once, when the GPUs are initialised, and counts for the whole process."),
        dropped("deferred_deletion_bytes", f"How much may wait to be freed: {_TUNING}."),
        dropped("polling_active_delay_usecs", f"How often a busy stream is looked at: {_TUNING}."),
        dropped("polling_inactive_delay_msecs", f"How often an idle stream is looked at: {_TUNING}."),
        dropped("force_gpu_compatible", f"All CPU tensors in pinned memory: {_TUNING}. tf.data pins what it copies to a device."),
        mapped("experimental.virtual_devices", "tf.config.set_logical_device_configuration", Fidelity.EXACT, _virtual_devices,
               _virtual_devices_back, ({"memory_limit_mb": (512.0, 512.0)},),
               note="One entry a visible GPU, in order."),
        manual("experimental.num_virtual_devices_per_gpu", "tf.config.set_logical_device_configuration",
               "Equal shares of a GPU: list as many LogicalDeviceConfigurations for each GPU, each with its megabytes."),
        manual("experimental.use_unified_memory", "the environment variable TF_FORCE_UNIFIED_MEMORY=1",
               "Use of more memory than the GPU has: set the variable before TensorFlow starts, for the whole process."),
        dropped("experimental.num_dev_to_dev_copy_streams", f"Streams for copies between GPUs: {_TUNING}."),
        dropped("experimental.collective_ring_order", "The order of GPUs in a ring: MirroredStrategy and NCCL choose it from the machine."),
        dropped("experimental.timestamped_allocator", f"An experiment in freeing memory earlier: {_TUNING}."),
        dropped("experimental.kernel_tracker_max_interval", f"How many kernels may be pending: {_TUNING}."),
        dropped("experimental.kernel_tracker_max_bytes", f"How much may be pending: {_TUNING}."),
        dropped("experimental.kernel_tracker_max_pending", f"How many kernels may be pending: {_TUNING}."),
        dropped("experimental.internal_fragmentation_fraction", f"When a block of memory is split: {_TUNING}."),
        mapped("experimental.use_cuda_malloc_async", "the environment variable TF_GPU_ALLOCATOR=cuda_malloc_async", Fidelity.APPROXIMATE,
               lambda value: Conversion({_ALLOCATOR: "cuda_malloc_async"} if value else {}), None, True,
               note="It is read once, when the GPUs are initialised, and counts for the whole process."),
        dropped("experimental.disallow_retry_on_allocation_failure",
                "Fail at once if memory is short, instead of after a wait: no public name; a job that fits is not affected."),
        manual("experimental.gpu_host_mem_limit_in_mb", "the environment variable TF_GPU_HOST_MEM_LIMIT_IN_MB",
               "A limit on pinned host memory: set the variable before TensorFlow starts."),
        dropped("experimental.gpu_host_mem_disallow_growth", f"All pinned host memory at the start: {_TUNING}."),
        dropped("experimental.gpu_system_memory_size_in_mb", f"Memory left to CUDA's own libraries: {_TUNING}."),
        dropped("experimental.populate_pjrt_gpu_client_creation_info", "How TensorFlow's own XLA client is made; set by TensorFlow."),
        dropped("experimental.node_id", "The task's number among GPU hosts; set by TensorFlow."),
        *(dropped(f"experimental.stream_merge_options.merge_{one}_stream", f"One CUDA stream for several purposes: {_TUNING}.")
          for one in ("host_to_device", "device_to_host", "device_to_device")),
    ),
    about="The tests apply these rows to simulated GPUs, and read back what TensorFlow's Python code would pass to the runtime; "
    "they do not run on a GPU.",
)  # fmt: skip
