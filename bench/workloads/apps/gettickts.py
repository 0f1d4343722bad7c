def settings(args):
    return {"shown": document("gettickts:settings").get("shown", 10)}


def search(args):
    shown = call("tcktapp-settings", {})["shown"]
    found = call("tcktapp-tickets", without(args, "day"))
    return {"day": args["day"], "tickets": found["tickets"][:shown]}
