"""Says what this interpreter is, and compiles the runtime, whose files come as a JSON object on the standard input."""

import base64
import importlib.util
import json
import marshal
import sys

modules = {}
for name, text in json.load(sys.stdin).items():
    code = compile(text, "/forerun/python/forerun_runtime/" + name, "exec", dont_inherit=True)
    # The form of a .pyc file: magic, flags, time and size of the source; without a source these are not looked at.
    data = importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code)
    modules[name[: -len(".py")] + ".pyc"] = base64.b64encode(data).decode()

json.dump(
    {
        "executable": sys.executable,
        "prefix": sys.base_prefix,
        "minor": sys.version_info.minor,
        "modules": modules,
    },
    sys.stdout,
)
