def ask(path):
    """Read a company's answer: here a record of the state has it."""
    _, question, about = path.split("/")
    return int(state.hget(f"answers:{question}", about) or len(path) % 100)
