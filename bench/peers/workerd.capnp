# Workerd's configuration: one worker, and the ten that it calls through service bindings.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "chain", worker = .chain),
    (name = "stage0", worker = .stage),
    (name = "stage1", worker = .stage),
    (name = "stage2", worker = .stage),
    (name = "stage3", worker = .stage),
    (name = "stage4", worker = .stage),
    (name = "stage5", worker = .stage),
    (name = "stage6", worker = .stage),
    (name = "stage7", worker = .stage),
    (name = "stage8", worker = .stage),
    (name = "stage9", worker = .stage),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "chain")],
);

const chain :Workerd.Worker = (
  modules = [(name = "chain.js", esModule = embed "chain.js")],
  compatibilityDate = "2025-09-01",
  bindings = [
    (name = "stage0", service = "stage0"),
    (name = "stage1", service = "stage1"),
    (name = "stage2", service = "stage2"),
    (name = "stage3", service = "stage3"),
    (name = "stage4", service = "stage4"),
    (name = "stage5", service = "stage5"),
    (name = "stage6", service = "stage6"),
    (name = "stage7", service = "stage7"),
    (name = "stage8", service = "stage8"),
    (name = "stage9", service = "stage9"),
  ],
);

const stage :Workerd.Worker = (
  modules = [(name = "stage.js", esModule = embed "stage.js")],
  compatibilityDate = "2025-09-01",
);
