package dev.forerun.offload.agent;

import dev.forerun.offload.graph.Heap;
import dev.forerun.offload.graph.Rules;
import dev.forerun.offload.graph.Types;
import dev.forerun.offload.wire.Out;
import java.util.ArrayDeque;
import java.util.List;

/** What the server knows of one instance of its function. One call at a time uses it. */
final class Session implements Types {
  private static final int RECEIVERS = 16;
  private static final int LEAST_SWEEP = 1000;

  final Application application;
  final Heap heap;
  int calls;
  private final ArrayDeque<Object> receivers = new ArrayDeque<>();
  private List<Integer> forgotten = List.of();
  private int sweepAt = LEAST_SWEEP;

  Session(Application application, Rules rules) {
    this.application = application;
    this.heap = Heap.ofServer(rules, this);
  }

  @Override
  public ClassLoader loader() {
    return application.loader();
  }

  @Override
  public String stubOf(Object pinned) {
    return application.stubOf(pinned.getClass());
  }

  @Override
  public void fetchStatics(Class<?> type) {
    throw new AssertionError("a server has its own statics");
  }

  /** A call ended well: what only it reached is forgotten, once there is enough of that. The last receivers stay, as beans do. */
  void ended(Object self) {
    calls++;
    receivers.removeIf(one -> one == self);
    receivers.addFirst(self);
    if (receivers.size() > RECEIVERS) {
      receivers.removeLast();
    }
    if (heap.size() >= sweepAt) {
      forgotten = heap.sweep(receivers);
      sweepAt = Math.max(LEAST_SWEEP, 2 * heap.size());
    }
  }

  /** Writes what the function has to forget. */
  void forget(Out out) {
    out.i32(forgotten.size());
    forgotten.forEach(out::i32);
    forgotten = List.of();
  }
}
