"""Normalize turns the sensor's unit into ours: {fahrenheit, ...} -> {celsius, ...}."""


def main(args: dict) -> dict:
    """Everything but the temperature passes through."""
    rest = {name: value for name, value in args.items() if name != "fahrenheit"}
    return rest | {"celsius": round((args["fahrenheit"] - 32) / 1.8, 1)}
