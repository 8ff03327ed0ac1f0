"""All public names that NumPy removed since 1.16; the tests compare this table with the real namespaces."""

from collections.abc import Mapping

from estimator_bridge.compat.source.removed_names import RESTORED, Removed

# New module -> names that it has.
_MOVED = {
    "builtins": "bool complex float int object str",
    "numpy.char": "chararray compare_chararrays",
    "numpy.exceptions": "AxisError ComplexWarning ModuleDeprecationWarning RankWarning TooHardError VisibleDeprecationWarning",
    "numpy.lib": "add_docstring add_newdoc",
    "numpy.lib.array_utils": "byte_bounds",
    "numpy.lib.npyio": "DataSource",
    "numpy.rec": "format_parser",
    "pickle": "loads",
}

# Today's name -> old names.
_RENAMED = {
    "ast.literal_eval": "safe_eval",
    "builtins.int": "long",
    "builtins.issubclass": "issubclass_",
    "builtins.len": "alen",
    "builtins.str": "unicode",
    "math": "math",
    "math.inf": "Inf Infinity PINF infty",
    "math.nan": "NAN NaN",
    "numpy.all": "alltrue",
    "numpy.any": "sometrue",
    "numpy.asmatrix": "mat",
    "numpy.bool_": "bool8",
    "numpy.bytes_": "bytes0 string_",
    "numpy.clongdouble": "clongfloat longcomplex",
    "numpy.complex128": "cfloat complex_",
    "numpy.complex64": "singlecomplex",
    "numpy.cumprod": "cumproduct",
    "numpy.float64": "float_",
    "numpy.intp": "int0",
    "numpy.longdouble": "longfloat",
    "numpy.ndim": "rank",
    "numpy.object_": "object0",
    "numpy.prod": "product",
    "numpy.round": "round_",
    "numpy.sctypeDict": "typeDict",
    "numpy.str_": "str0 unicode_",
    "numpy.trapezoid": "trapz",
    "numpy.uintp": "uint0",
    "numpy.void": "void0",
    "numpy.vstack": "row_stack",
    "sys": "sys",
    "warnings": "warnings",
}

# Functions and values of our own with the same names.
_WRITTEN_ANEW = (
    "NINF NZERO PZERO asfarray asscalar cast deprecate disp find_common_type in1d issctype issubsctype maximum_sctype msort nbytes "
    "obj2sctype recfromcsv recfromtxt sctype2char sctypes source typeNA"
)

_FINANCIAL = "fv ipmt irr mirr nper npv pmt ppmt pv rate"

_ERROR_MASKS = (
    "ERR_CALL ERR_DEFAULT ERR_IGNORE ERR_LOG ERR_PRINT ERR_RAISE ERR_WARN FPE_DIVIDEBYZERO FPE_INVALID FPE_OVERFLOW FPE_UNDERFLOW "
    "SHIFT_DIVIDEBYZERO SHIFT_INVALID SHIFT_OVERFLOW SHIFT_UNDERFLOW UFUNC_BUFSIZE_DEFAULT UFUNC_PYVALS_NAME geterrobj seterrobj"
)

_INTERNAL = (
    "ALLOW_THREADS BUFSIZE CLIP FLOATING_POINT_SUPPORT MAXDIMS MAY_SHARE_BOUNDS MAY_SHARE_EXACT RAISE WRAP absolute_import "
    "add_newdoc_ufunc compat division get_array_wrap int_asbuffer kernel_version matrixlib numarray oldnumeric print_function "
    "tracemalloc_domain"
)

_BY_HAND = {
    **{name: f"The package numpy_financial has {name}." for name in _FINANCIAL.split()},
    **dict.fromkeys(_ERROR_MASKS.split(), "Use numpy.errstate or numpy.seterr."),
    **dict.fromkeys(_INTERNAL.split(), "It was internal to NumPy; write the value or the function that you mean."),
    "MachAr": "Ask numpy.finfo.",
    "Tester": "Run the tests with pytest.",
    "deprecate_with_doc": "Issue a DeprecationWarning with the warnings module.",
    "fastCopyAndTranspose": "Write a.T.copy().",
    "lookfor": "It searched docstrings; leave it out.",
    "mafromtxt": "Write numpy.genfromtxt(..., usemask=True).",
    "ndfromtxt": "Write numpy.genfromtxt.",
    "sctypeNA": "It mapped types to numarray's; leave it out.",
    "set_numeric_ops": "It exchanged the operators of all arrays; call the functions that you mean.",
    "set_string_function": "Use numpy.set_printoptions(formatter=...).",
    "who": "It printed the arrays in scope; leave it out.",
}

REMOVED: Mapping[str, Removed] = {
    **{name: Removed(f"{module}.{name}") for module, names in _MOVED.items() for name in names.split()},
    **{name: Removed(target) for target, names in _RENAMED.items() for name in names.split()},
    **{name: Removed(f"{RESTORED}numpy.{name}") for name in _WRITTEN_ANEW.split()},
    **{name: Removed("", note) for name, note in _BY_HAND.items()},
}
"""By the name below ``numpy``."""

CHANGED: Mapping[str, str] = {
    "bool": "In NumPy 1 it was Python's bool, in NumPy 2 it is numpy.bool_: isinstance(True, np.bool) is now False. Write bool.",
    "long": "In NumPy 1 it was Python's int, in NumPy 2 it is a scalar type: isinstance(1, np.long) is now False. Write int.",
}
"""Names that NumPy 2 has again, with another meaning: the same as a dtype, another as a Python type."""
