# What follows makes a native program of it: it answers what comes by OpenWhisk's ActionLoop.
def serve():
    global OUTSIDE, loaded
    for line in sys.stdin:
        activation = json.loads(line)
        for name, value in activation.items():
            if name != "value":
                os.environ["__OW_" + name.upper()] = str(value)
        params, loaded = activation["value"], 0  # of what it has served before it says nothing
        if isinstance(params, dict):
            OUTSIDE = params.pop("outside", OUTSIDE)
        answer = json.dumps(main(params))
        sys.stdout.flush()
        os.write(3, answer.encode() + b"\n")


serve()
