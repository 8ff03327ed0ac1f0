"""The names of TensorFlow that a script finds under the runner, read from a table of listed versions; nothing is imported."""

import dataclasses
import functools
import gzip
import importlib.metadata
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

_TABLE = Path(__file__).with_name("symbols.txt.gz")
_COMPILED = ("tensorflow.python._pywrap", "tensorflow.python.pywrap", "tensorflow.python._")  # extension modules, not listed
_FILES = "tensorflow.python."


@dataclasses.dataclass(frozen=True)
class Surface:
    """The names of one version of TensorFlow.

    Attributes:
        version: Version of TensorFlow.
        modules: Names in each module; ``tensorflow`` is TensorFlow 1's namespace, and protocol buffers are not listed.
    """

    version: str
    modules: Mapping[str, frozenset[str]]

    def has(self, name: str) -> bool:
        """Returns True if a dotted name exists; attributes of classes and functions are not checked.

        Args:
            name: Dotted name as ``canonical`` spells it, e.g. ``tensorflow.train.AdamOptimizer``.

        Example:
            >>> surface = load_surface("2.21.0")
            >>> surface.has("tensorflow.train.AdamOptimizer"), surface.has("tensorflow.train.Adam")
            (True, False)
        """
        for module in reversed(prefixes(name)):
            if module in self.modules:
                member = name[len(module) + 1 :].partition(".")[0]
                return (
                    not member
                    or member.startswith("__")
                    or member in self.modules[module]
                    or module.endswith("_pb2")
                    or name.startswith(_COMPILED)
                    or any(self.has(f"{other}.{name[len(module) + 1 :]}") for other in self._behind(module, member))
                )
        return False

    def _behind(self, folder: str, member: str) -> Iterator[str]:
        """Yields where the runner finds what TensorFlow 1's folder had because its files import it, see ``legacy.tf1_surface.python_files``."""
        if folder == "tensorflow.python.ops":
            yield "tensorflow.python.framework.ops"
        if folder == "tensorflow.python":
            places = (f"tensorflow.python.{one}" for one in ("ops", "framework", "training"))
            yield from (place for place in places if f"{place}.{member}" in self.modules)

    def nearest(self, name: str) -> str:
        """Returns a name up to its first missing part.

        Args:
            name: Dotted name that does not exist.
        """
        return next((prefix for prefix in prefixes(name) if not self.has(prefix) and prefix != "tensorflow"), name)


def prefixes(name: str) -> list[str]:
    """Returns the names around a dotted name, shortest first, then the name itself.

    Example:
        >>> prefixes("tf.train.Saver")
        ['tf', 'tf.train', 'tf.train.Saver']
    """
    return list(itertools.accumulate(name.split("."), "{}.{}".format))


def canonical(name: str) -> str:
    """Returns the one spelling of a name below ``tensorflow``.

    Example:
        >>> canonical("tensorflow.compat.v1.train.Saver"), canonical("tensorflow_estimator.estimator.Estimator")
        ('tensorflow.train.Saver', 'tensorflow.estimator.Estimator')
    """
    if name.startswith(("tensorflow_estimator.python.", "tensorflow_estimator.estimator.", "tensorflow_estimator.compat.v1.")):
        name = name.replace("tensorflow_estimator", "tensorflow", 1)
    while name.startswith("tensorflow.compat.v1.") or name == "tensorflow.compat.v1":
        name = "tensorflow" + name.removeprefix("tensorflow.compat.v1")
    return name


def as_written(name: str) -> str:
    """Returns a canonical name as users write it.

    Example:
        >>> as_written("tensorflow.train.Saver")
        'tf.train.Saver'
    """
    return name.replace("tensorflow.", "tf.", 1) if not name.startswith(_FILES) else name


@functools.cache
def installed_version() -> str:
    """Returns the listed version with the minor version of the installed TensorFlow; the newest if there is none."""
    listed = _table()[0]
    try:
        installed = importlib.metadata.version("tensorflow")
    except importlib.metadata.PackageNotFoundError:  # a build of another name, or none
        others = importlib.metadata.packages_distributions().get("tensorflow", ())
        installed = next(map(importlib.metadata.version, others), "")
    return next((version for version in listed if version.split(".")[:2] == installed.split(".")[:2]), listed[-1])


@functools.cache
def load_surface(version: str) -> Surface:
    """Reads the names of one of the listed versions.

    Args:
        version: Listed version, e.g. ``2.21.0``.
    """
    listed, lines = _table()
    number = str(listed.index(version))
    modules: dict[str, frozenset[str]] = {}
    for line in lines:
        present = [
            name for name, _, numbers in (word.partition(":") for word in line.split(" ")) if not numbers or number in numbers
        ]
        head = line.partition(" ")[0].partition(":")[0]
        if present and present[0] == head:
            modules[head] = frozenset(present[1:])
    for module in list(modules):
        for prefix in prefixes(module):
            modules.setdefault(prefix, frozenset())  # a folder without a file of its own
    return Surface(version, modules)


@functools.cache
def _table() -> tuple[list[str], list[str]]:
    versions, *lines = gzip.decompress(_TABLE.read_bytes()).decode().splitlines()
    return versions.split(" "), lines
