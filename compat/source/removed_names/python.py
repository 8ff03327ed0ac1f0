"""Names that Python removed by 3.13: those of Python 3.6, and those of 2.7 whose modules still exist."""

import ast
from collections.abc import Mapping

from estimator_bridge.compat.source.removed_names import RESTORED, Removed

_FUNCTIONS = f"{RESTORED}python"

_GONE_FOR_GOOD = {
    **{name: f"The package standard-{name} has it." for name in ("aifc", "chunk", "nntplib", "sndhdr", "sunau")},
    **dict.fromkeys(("nis", "ossaudiodev", "spwd"), "Nothing took its place."),
    "asynchat": "Use asyncio; the package pyasynchat has the old module.",
    "asyncore": "Use asyncio; the package pyasyncore has the old module.",
    "audioop": "The package audioop-lts has it.",
    "binhex": "Use binascii.",
    "cgi": "Use urllib.parse; the package legacy-cgi has the old module.",
    "cgitb": "The package legacy-cgi has it.",
    "crypt": "Use hashlib.",
    "formatter": "Write the text yourself; nothing took its place.",
    "imghdr": "The package standard-imghdr has it, filetype does the same.",
    "lib2to3": "The package fissix has it.",
    "macpath": "Use posixpath.",
    "macurl2path": "Use urllib.request.",
    "mailcap": "Use mimetypes.",
    "parser": "Use ast.",
    "smtpd": "The package aiosmtpd does the same.",
    "symbol": "Use ast.",
    "telnetlib": "The package telnetlib3 does the same.",
    "uu": "Use base64.",
    "xdrlib": "Use struct.",
}

MODULES: Mapping[str, Removed] = {
    "distutils": Removed("setuptools._distutils", "setuptools keeps it"),
    "dummy_threading": Removed("threading"),
    "imp": Removed(f"{RESTORED}imp"),
    "pipes": Removed(f"{RESTORED}pipes", "pipes.quote alone"),
    "pkg_resources": Removed(f"{RESTORED}pkg_resources", "versions, resources and distributions, over importlib"),
    **{name: Removed("", note) for name, note in _GONE_FOR_GOOD.items()},
}
"""Modules that were removed, with their submodules."""

# Old and new module -> names that moved.
_MOVED = {
    ("collections", "collections.abc"): (
        "AsyncGenerator AsyncIterable AsyncIterator Awaitable Callable Collection Container Coroutine Generator Hashable ItemsView "
        "Iterable Iterator KeysView Mapping MappingView MutableMapping MutableSequence MutableSet Reversible Sequence Set Sized ValuesView"
    ),
    ("string", "builtins.str"): "lower maketrans replace split strip upper",
    ("urllib", "urllib.parse"): "quote quote_plus unquote unquote_plus urlencode",
    ("urllib", "urllib.request"): "urlopen urlretrieve",
}

# Today's name -> old names.
_RENAMED = {
    "ast.Constant": "ast.Num ast.Str",
    "asyncio.ensure_future": "asyncio.async",
    "base64.decodebytes": "base64.decodestring",
    "base64.encodebytes": "base64.encodestring",
    "builtins.bool": "types.BooleanType",
    "builtins.dict": "types.DictType",
    "builtins.filter": "itertools.ifilter",
    "builtins.float": "string.atof types.FloatType",
    "builtins.int": "string.atoi types.IntType types.LongType",
    "builtins.list": "types.ListType",
    "builtins.map": "itertools.imap",
    "builtins.str": "types.StringType types.UnicodeType",
    "builtins.tuple": "types.TupleType",
    "builtins.zip": "itertools.izip",
    "configparser.ConfigParser": "configparser.SafeConfigParser",
    "errno": "os.errno",
    "grp.getgrnam": "shutil.getgrnam",
    "itertools.filterfalse": "itertools.ifilterfalse",
    "itertools.zip_longest": "itertools.izip_longest",
    "os.getcwd": "os.getcwdu",
    "pwd.getpwnam": "shutil.getpwnam",
    "stat.filemode": "tarfile.filemode",
    "string.ascii_letters": "string.letters",
    "string.ascii_lowercase": "string.lowercase",
    "string.ascii_uppercase": "string.uppercase",
    "sys.maxsize": "sys.maxint",
    "time.process_time": "time.clock",
    "types.coroutine": "asyncio.coroutine",
    f"{_FUNCTIONS}.ArgSpec": "inspect.ArgSpec",
    f"{_FUNCTIONS}.find_loader": "importlib.find_loader",
    f"{_FUNCTIONS}.find_test_cases": "unittest.findTestCases",
    f"{_FUNCTIONS}.gcd": "fractions.gcd",
    f"{_FUNCTIONS}.getargspec": "inspect.getargspec",
    f"{_FUNCTIONS}.linux_distribution": "platform.dist platform.linux_distribution",
    f"{_FUNCTIONS}.make_suite": "unittest.makeSuite",
    f"{_FUNCTIONS}.read_plist": "plistlib.readPlist",
    f"{_FUNCTIONS}.set_default_encoding": "sys.setdefaultencoding",
    f"{_FUNCTIONS}.string_join": "string.join",
    f"{_FUNCTIONS}.string_types": "types.StringTypes",
    f"{_FUNCTIONS}.write_plist": "plistlib.writePlist",
}

_BY_HAND = {
    "collections.ByteString": "Name the types: (bytes, bytearray).",
    "gettext.bind_textdomain_codeset": "gettext gives text; leave it out.",
    **{f"gettext.l{name}": f"Use gettext.{name}." for name in ("dgettext", "dngettext", "gettext", "ngettext")},
    "inspect.formatargspec": "Use str(inspect.signature(function)).",
    "locale.format": "Use locale.format_string.",
    "locale.resetlocale": "Use locale.setlocale(locale.LC_ALL, '').",
    "os.stat_float_times": "Times are floats; leave it out.",
    "pkgutil.ImpImporter": "Use importlib.",
    "pkgutil.ImpLoader": "Use importlib.",
    "platform.popen": "Use subprocess.",
    "re.template": "Use re.compile.",
    "ssl.match_hostname": "An SSLContext checks host names.",
    "ssl.wrap_socket": "Use ssl.SSLContext.wrap_socket.",
    "sys.getcheckinterval": "Use sys.getswitchinterval.",
    "sys.setcheckinterval": "Use sys.setswitchinterval.",
}

ATTRIBUTES: Mapping[str, Removed] = {
    **{f"{old}.{name}": Removed(f"{new}.{name}") for (old, new), names in _MOVED.items() for name in names.split()},
    **{name: Removed(target) for target, names in _RENAMED.items() for name in names.split()},
    **{name: Removed("", note) for name, note in _BY_HAND.items()},
}
"""Names that were removed from modules that still exist."""

_ABSTRACT = _MOVED["collections", "collections.abc"].split()


def with_abstract_classes(text: str) -> str:
    """Returns a source in which the abstract classes of collections have the names that Python 3.10 and later know, each in its line.

    Args:
        text: Source in Python 3.

    Example:
        >>> with_abstract_classes("import collections; isinstance(x, collections.Iterable)")
        'import collections; import collections.abc; isinstance(x, collections.abc.Iterable)'
        >>> with_abstract_classes("from collections import Mapping, OrderedDict")
        'from collections import OrderedDict; from collections.abc import Mapping'
    """
    if "collections" not in text:
        return text
    try:
        tree = ast.parse(text)
    except SyntaxError:  # who parses it next says so
        return text
    lines = text.encode().split(b"\n")
    edits: list[tuple[int, int, int, int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "collections" and node.attr in _ABSTRACT:
            edits.append((*_span(node.value), "collections.abc"))
        elif isinstance(node, ast.ImportFrom) and node.module == "collections" and not node.level:
            moved = [one for one in node.names if one.name in _ABSTRACT]
            rest = [one for one in node.names if one.name not in _ABSTRACT]
            parts = {"collections": rest, "collections.abc": moved}
            new = "; ".join(ast.unparse(ast.ImportFrom(module, names, 0)) for module, names in parts.items() if names)
            edits += [(*_span(node), new)] if moved else []
    if any(new == "collections.abc" for *_, new in edits):
        imports = [
            one
            for one in ast.walk(tree)
            if isinstance(one, ast.Import) and any(each.name == "collections" for each in one.names)
        ]
        edits += [(*_span(one), f"{ast.unparse(one)}; import collections.abc") for one in imports]
    for first, column, last, end, new in sorted(edits, reverse=True):
        changed = lines[first - 1][:column] + new.encode() + lines[last - 1][end:]
        lines[first - 1 : last] = [changed, *([b""] * (last - first))]
    return b"\n".join(lines).decode()


def _span(node: ast.expr | ast.stmt) -> tuple[int, int, int, int]:
    """Returns the first line of a node and the column in it, and those behind its end."""
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
