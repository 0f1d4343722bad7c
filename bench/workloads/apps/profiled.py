import time

commands = []
execute = state.execute_command


def counted(*args, **options):
    """Note the command and execute it."""
    commands.append(args[0])
    return execute(*args, **options)


def profiled(args):
    """Run the function and write what it took to the log: CPU in milliseconds and the commands."""
    state.execute_command = counted
    began = time.process_time()
    try:
        return FUNCTION(args)
    finally:
        spent = 1000 * (time.process_time() - began)
        print("profile", json.dumps({"cpu": round(spent, 3), "commands": commands}))
