"""Lists a model_dir twice by a function of Python's, and the side's own folder once: ``listed_model_dir.py ASKED OWN FUNCTION``."""

import glob, os, pathlib, sys
from estimator_bridge.parity.recording.folders.python_listings import note_listings

asked, own, function = sys.argv[1:]
note_listings(lambda path: path.replace(asked, own), print)
listings = {
    "listdir": lambda: os.listdir(asked),
    "glob": lambda: glob.glob(asked + "/*.index"),
    "pathlib": lambda: list(pathlib.Path(asked).glob("*")),
}
listings[function]()
listings[function]()
os.listdir(own)
