def ask(path):
    """Read a company's answer: here a record of the state has it."""
    _, question, about = path.split("/")
    return int(state.hget(f"answers:{question}", about) or len(path) % 100)


def settings(args):
    return {"shown": document("gettickts:settings").get("shown", 10)}


def search(args):
    shown = call("tcktapp-settings", {})["shown"]
    found = call("tcktapp-tickets", without(args, "day"))
    return {"day": args["day"], "tickets": found["tickets"][:shown]}
