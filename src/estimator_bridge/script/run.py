"""Runs an unmodified TensorFlow 1 script as ``__main__``, in the same way as ``python SCRIPT`` or ``python -m MODULE``."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import ctypes
import dataclasses
import gc
import importlib.util
import os
import signal
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Any

from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.compat.source.notebooks.cells import is_notebook, refuse_ipython_lines
from estimator_bridge.compat.source.reading import check_path
from estimator_bridge.compat.source.rules.asked_version import choose_version
from estimator_bridge.errors import BridgeError
from estimator_bridge.legacy.distribution.input_sharding import shard_input
from estimator_bridge.legacy.distribution.launched.launched_task import join_launcher
from estimator_bridge.legacy.distribution.strategies import mend_strategies
from estimator_bridge.legacy.distribution.sync_replicas import synchronize_replicas
from estimator_bridge.legacy.input_results import mend_input_results
from estimator_bridge.legacy.installation import install
from estimator_bridge.legacy.tf1_surface.behavior import show_tf1_behavior, tf1_behavior
from estimator_bridge.legacy.tf1_surface.tf1_imports import tf1_imports, version_names
from estimator_bridge.legacy.tf1_surface.tutorial_modules import example_modules
from estimator_bridge.legacy.upstream_contrib.stand_ins.learn import refused
from estimator_bridge.legacy.warn_once import warn_once
from estimator_bridge.runtime.estimator_calls import Engine, EstimatorEngine, interposed
from estimator_bridge.script.loading import compile_own_modules, compile_script
from estimator_bridge.script.quiet import quiet_deprecations, quiet_start_up
from estimator_bridge.script.source_warnings import script_sources, warn_about_sources
from estimator_bridge.script.waiting import say_what_is_awaited


@dataclasses.dataclass(frozen=True)
class Script:
    """A script and the way to run it.

    Attributes:
        target: Path of a Python file or a Jupyter notebook, or dotted name of a module.
        args: Command line of the script.
        is_module: True if ``target`` is a module.
        python2: True if the script and its own modules are written for Python 2.
        v2_behavior: True if the script is written for TensorFlow 2 and Estimators, and keeps TensorFlow 2's names and behaviour.
        verbose: True if TensorFlow's deprecation warnings are printed.
        tf_version: Value of ``tf.__version__`` for the script; empty to choose it by what the script does with it.
    """

    target: str
    args: tuple[str, ...] = ()
    is_module: bool = False
    python2: bool = False
    v2_behavior: bool = False
    verbose: bool = False
    tf_version: str = ""

    def check(self) -> None:
        """Raises BridgeError if the target does not exist, or is a notebook that cannot be run, as far as that is known without an import."""
        if self.is_module:
            self._check_module()
        else:
            self._check_file()

    def check_syntax(self) -> None:
        """Raises BridgeError if the target is a file that Python cannot read, before processes start that would say it later."""
        self.check()
        if self.is_module:
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile_script(self.target, self.python2)
        except (SyntaxError, ValueError, RecursionError) as error:
            place = getattr(error, "filename", None) or self.target
            line = getattr(error, "lineno", None)
            raise BridgeError(
                f"{place}{f', line {line}' if line else ''}: Python cannot read this: {getattr(error, 'msg', error)}",
                received=(getattr(error, "text", None) or "").strip() or None,
                fix="Correct that line." if self.python2 else "Correct that line; --py2 is for an old script in Python 2.",
            ) from None

    def _check_file(self) -> None:
        path = Path(self.target)
        check_path(path)
        if path.is_dir():
            what, fix = "The script is a folder.", f"Name the file in it that you run, e.g. {path / 'train.py'}."
        elif not path.exists():
            what, fix = "There is no such script.", "Check the path; arguments of the script come after it."
        elif not os.access(path, os.R_OK):
            what, fix = (
                "The script cannot be read: no permission.",
                "Check the file's permissions, and the user that runs this command.",
            )
        else:
            if is_notebook(path):
                refuse_ipython_lines(path.read_bytes(), self.target)
            return
        raise BridgeError(what, expected="the path of a Python file, or -m and a module's name", received=self.target, fix=fix)

    def _check_module(self) -> None:
        if "" in self.target.split("."):
            raise _no_module(self.target, "Write the whole name, from the top package on.")
        if self.target.endswith(".py"):
            name = self.target.removesuffix(".py")
            raise _no_module(self.target, f"Use -m {name} for the module, or leave -m out for the file.")

    def __str__(self) -> str:
        return f"-m {self.target}" if self.is_module else self.target


def run_legacy(script: Script, make_engine: Callable[[], Engine] = EstimatorEngine) -> None:
    """Runs a script on the legacy path: with tensorflow-estimator, and with TF1 behaviour unless the script asks for TF2's.

    Args:
        script: Script to run; its exceptions come through, SystemExit included.
        make_engine: Function that makes the engine of the Estimators' calls, after tf.estimator is restored.
    """
    names = _start(script)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.nullcontext() if script.verbose else quiet_deprecations())
        stack.enter_context(join_launcher())
        stack.enter_context(synchronize_replicas())
        stack.enter_context(mend_strategies())
        stack.enter_context(interposed(make_engine()))
        stack.enter_context(mend_input_results())
        stack.enter_context(shard_input())  # shards the result of the mend
        stack.enter_context(_old_names())
        if not script.v2_behavior:
            tf1_behavior()
            stack.enter_context(tf1_imports(names))
        run_as_main(script)


def run_modern(script: Script, make_engine: Callable[[], Engine]) -> None:
    """Runs a script for an engine that needs TF2 behaviour.

    The script itself builds graphs with TF1's Dimension objects; its switches to TF1 behaviour do nothing.

    Args:
        script: Script to run; its exceptions come through, SystemExit included.
        make_engine: Function that makes the engine of the Estimators' calls, after tf.estimator is restored.
    """
    names = _start(script)
    engine = make_engine()
    with (
        contextlib.nullcontext() if script.verbose else quiet_deprecations(),
        join_launcher(),
        interposed(engine),
        refused("it trains in a session of its own, and the modern path has none."),
        mend_input_results(),
        show_tf1_behavior() as overrides,
        _old_names(),
        tf1_imports({**overrides, **names}),
    ):
        run_as_main(script)


def _start(script: Script) -> dict[str, Any]:
    """Checks a script, loads TensorFlow, and tells the launcher, if there is one, its version.

    Returns:
        Names of ``tf`` that have other values for the script than in the installed TensorFlow.
    """
    script.check()
    sources = script_sources(script.target, script.is_module)
    if not sources and not script.is_module and Path(script.target).is_file():
        compile_script(script.target, script.python2)  # raises Python's error before TensorFlow loads
    warn_about_sources(sources, script.python2)
    with contextlib.nullcontext() if script.verbose else quiet_start_up():
        install()
    import tensorflow as tf

    if rendezvous := Rendezvous.of_this_process():
        rendezvous.report_version(tf.__version__)
    version = script.tf_version
    choice = None if version or script.v2_behavior else choose_version(sources, tf.__version__)
    if choice is not None:
        warn_once(f"tf.__version__ is {choice.version} here: {choice.reason}; --tf-version changes it", choice.where)
        version = choice.version
    return version_names(version) if version else {}


@contextlib.contextmanager
def _old_names() -> Iterator[None]:
    """While active, removed names outside ``tf`` can be used. Enter it before ``tf1_imports``, which looks at the importing frame."""
    from estimator_bridge.legacy.removed_names.patches import answer_removed_names

    with answer_removed_names(), example_modules():
        yield


def run_as_main(script: Script) -> None:
    """Runs a script as ``__main__`` with the command line, ``sys.path[0]`` and globals that Python gives it.

    Args:
        script: Script to run; its exceptions come through, SystemExit included.
    """
    threads = set(threading.enumerate())
    atexit.register(_delay_aborts)
    with _process_of(script), compile_own_modules(script.python2), say_what_is_awaited():
        try:
            if script.is_module:
                _run_module(script.target)
            else:
                _run_file(script.target, script.python2)
        except SystemExit:
            _join_new(threads)
            raise
        _join_new(threads)


@contextlib.contextmanager
def _process_of(script: Script) -> Iterator[None]:
    """While active, sys.argv and sys.path[0] are those of ``python SCRIPT``; the entry of our own start is removed."""
    argv, path = sys.argv, list(sys.path)
    if not getattr(sys.flags, "safe_path", False):  # python -P; new in 3.11
        starts = {"", str(Path.cwd()), str(Path(argv[0]).resolve().parent)}
        first = Path.cwd() if script.is_module else Path(script.target).resolve().parent
        sys.path[: 1 if path and path[0] in starts else 0] = [str(first)]
    sys.argv = ["-m" if script.is_module else script.target, *script.args]
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


def _run_file(path: str, python2: bool) -> None:
    file = str(Path.cwd() / path)
    names = {"display": print} if is_notebook(Path(path)) else {}  # IPython's
    codes = compile_script(path, python2)
    _execute(*codes, __file__=file, __cached__=None, __loader__=SourceFileLoader("__main__", file), **names)


def _run_module(name: str) -> None:
    spec = _find(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _find(f"{name}.__main__")
        if spec is None:
            raise _no_module(name, "It is a package without a __main__.py: name the module in it that you run.")
    loader: Any = spec and spec.loader
    code = loader.get_code(spec.name) if spec and hasattr(loader, "get_code") else None
    if spec is None or code is None:
        raise _no_module(name, "Start in the folder of its top package, or add that folder to PYTHONPATH.")
    sys.argv[0] = spec.origin or name
    _execute(code, __file__=spec.origin, __cached__=spec.cached, __loader__=loader, __package__=spec.parent, __spec__=spec)


def _execute(*codes: types.CodeType, **attributes: Any) -> None:
    main = types.ModuleType("__main__")
    main.__dict__.update(attributes, __annotations__={}, __builtins__=builtins)
    before = sys.modules["__main__"]
    sys.modules["__main__"] = main
    try:
        for code in codes:
            exec(code, main.__dict__)  # noqa: S102 -- the purpose of this module
    finally:
        sys.modules["__main__"] = before


def _find(name: str) -> ModuleSpec | None:
    """Returns the spec of a module, and imports the packages around it as ``python -m`` does."""
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            return None
        raise


def _no_module(name: str, fix: str) -> BridgeError:
    return BridgeError("There is no such module.", expected="-m and the name of a module", received=name, fix=fix)


def _delay_aborts() -> None:
    """Lets this process end with its own exit code when a thread of TensorFlow calls Python too late.

    Python ends such a thread, which C++ takes for an error: it prints "terminate called" and calls abort(). With pause() as C++'s handler of
    such errors, the thread waits instead, without a word, while the main thread ends the process. As the handler of SIGABRT, sleep() gets
    the signal's number, 6: a thread that aborts otherwise sleeps 6 seconds. A main thread that aborts does so after them.
    """
    libc = ctypes.CDLL(None)
    libc.signal(signal.SIGABRT, ctypes.cast(libc.sleep, ctypes.c_void_p))
    with contextlib.suppress(OSError, AttributeError):  # another C++ library
        ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE(ctypes.cast(libc.pause, ctypes.c_void_p))  # std::set_terminate


def _join_new(threads: set[threading.Thread]) -> None:
    """Waits for the script's threads, as Python does at its end: they need TensorFlow as the script sees it."""
    new = set(threading.enumerate()) - threads
    for pool in [one for one in gc.get_objects() if type(one) is ThreadPoolExecutor]:
        if new & pool._threads:
            pool.shutdown()  # else its threads wait for more work
    for thread in new:
        if not thread.daemon:
            thread.join()
