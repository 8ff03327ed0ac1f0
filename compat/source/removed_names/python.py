"""Names that Python removed by 3.13: those of Python 3.6, and those of 2.7 whose modules still exist."""

from __future__ import annotations

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

_RENAMED = {
    "ast.Num": "ast.Constant",
    "ast.Str": "ast.Constant",
    "asyncio.async": "asyncio.ensure_future",
    "asyncio.coroutine": "types.coroutine",
    "base64.decodestring": "base64.decodebytes",
    "base64.encodestring": "base64.encodebytes",
    "configparser.SafeConfigParser": "configparser.ConfigParser",
    "fractions.gcd": f"{_FUNCTIONS}.gcd",
    "importlib.find_loader": f"{_FUNCTIONS}.find_loader",
    "inspect.ArgSpec": f"{_FUNCTIONS}.ArgSpec",
    "inspect.getargspec": f"{_FUNCTIONS}.getargspec",
    "itertools.ifilter": "builtins.filter",
    "itertools.ifilterfalse": "itertools.filterfalse",
    "itertools.imap": "builtins.map",
    "itertools.izip": "builtins.zip",
    "itertools.izip_longest": "itertools.zip_longest",
    "os.errno": "errno",
    "os.getcwdu": "os.getcwd",
    "platform.dist": f"{_FUNCTIONS}.linux_distribution",
    "platform.linux_distribution": f"{_FUNCTIONS}.linux_distribution",
    "plistlib.readPlist": f"{_FUNCTIONS}.read_plist",
    "plistlib.writePlist": f"{_FUNCTIONS}.write_plist",
    "shutil.getgrnam": "grp.getgrnam",
    "shutil.getpwnam": "pwd.getpwnam",
    "string.atof": "builtins.float",
    "string.atoi": "builtins.int",
    "string.join": f"{_FUNCTIONS}.string_join",
    "string.letters": "string.ascii_letters",
    "string.lowercase": "string.ascii_lowercase",
    "string.uppercase": "string.ascii_uppercase",
    "sys.maxint": "sys.maxsize",
    "sys.setdefaultencoding": f"{_FUNCTIONS}.set_default_encoding",
    "tarfile.filemode": "stat.filemode",
    "time.clock": "time.process_time",
    "types.BooleanType": "builtins.bool",
    "types.DictType": "builtins.dict",
    "types.FloatType": "builtins.float",
    "types.IntType": "builtins.int",
    "types.ListType": "builtins.list",
    "types.LongType": "builtins.int",
    "types.StringType": "builtins.str",
    "types.StringTypes": f"{_FUNCTIONS}.string_types",
    "types.TupleType": "builtins.tuple",
    "types.UnicodeType": "builtins.str",
    "unittest.findTestCases": f"{_FUNCTIONS}.find_test_cases",
    "unittest.makeSuite": f"{_FUNCTIONS}.make_suite",
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
    **{name: Removed(target) for name, target in _RENAMED.items()},
    **{name: Removed("", note) for name, note in _BY_HAND.items()},
}
"""Names that were removed from modules that still exist."""
