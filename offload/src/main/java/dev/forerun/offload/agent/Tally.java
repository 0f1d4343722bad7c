package dev.forerun.offload.agent;

import dev.forerun.offload.wire.Json;
import dev.forerun.offload.wire.Type;
import java.util.EnumMap;
import java.util.Map;

/** Counts the calls of one root by their outcome. */
final class Tally {
  private long offloaded;
  private long local;
  private long lost;
  private long repeatable;
  private long sent;
  private long received;
  private long nanosHere;
  private long nanosThere;
  private final Map<Type, Long> exchanges = new EnumMap<>(Type.class);
  private String refused = "";
  private String last = "";

  /** A call that a function answered, or that was lost. */
  synchronized void served(Surrogate surrogate, long nanos, boolean isLost) {
    offloaded += isLost ? 0 : 1;
    lost += isLost ? 1 : 0;
    repeatable += surrogate.visible() == null ? 1 : 0;
    sent += surrogate.sent();
    received += surrogate.received();
    nanosHere += nanos;
    nanosThere += surrogate.nanosThere();
    surrogate.exchanges().forEach((type, count) -> exchanges.merge(type, (long) count, Long::sum));
  }

  /** A call that ran here. */
  synchronized void local(String why) {
    local++;
    last = why;
  }

  /** The root runs here from now on. */
  synchronized void refused(String why) {
    refused = why;
  }

  synchronized String refused() {
    return refused;
  }

  synchronized void write(Json json, String root) {
    json.open().field("root", root).field("offloaded", offloaded).field("local", local).field("lost", lost);
    json.field("repeatable", repeatable).field("sentBytes", sent).field("receivedBytes", received);
    json.field("cpuHereNanos", nanosHere).field("cpuThereNanos", nanosThere);
    json.field("refused", refused).field("lastLocal", last).name("exchanges").open();
    exchanges.forEach((type, count) -> json.field(type.name().toLowerCase(java.util.Locale.ROOT), count));
    json.close().close();
  }
}
