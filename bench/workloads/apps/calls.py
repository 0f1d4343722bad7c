import openwhisk


def call(name: str, args: dict) -> dict:
    """Call another function of the application and wait for its result."""
    return openwhisk.invoke(name, args)
