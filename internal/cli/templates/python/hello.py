def main(args):
    """Greet the person that the caller names."""
    return {"greeting": f"Hello {args['name']}!"}
