package sample;

import dev.forerun.offload.graph.Heap;
import dev.forerun.offload.graph.Plain;
import dev.forerun.offload.graph.Rules;
import dev.forerun.offload.graph.Types;
import dev.forerun.offload.wire.In;
import dev.forerun.offload.wire.Link;
import dev.forerun.offload.wire.Out;
import dev.forerun.offload.wire.Type;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The byte vectors of PROTOCOL.md: what is written is what they say, and they are read as what was written. */
public final class Vectors {
  private Vectors() {}

  private static final Types TYPES =
      new Types() {
        @Override
        public ClassLoader loader() {
          return Vectors.class.getClassLoader();
        }

        @Override
        public String stubOf(Object pinned) {
          throw new AssertionError();
        }

        @Override
        public void fetchStatics(Class<?> type) {
          throw new AssertionError();
        }
      };

  private static byte[] frame(Type type, Out out) throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (Link link = new Link(InputStream.nullInputStream(), bytes, () -> {})) {
      link.send(type, out);
    }
    return bytes.toByteArray();
  }

  private static byte[] delta(Object root) {
    Out out = new Out();
    Heap.ofServer(Rules.ofServer(name -> false), TYPES).write(out, Collections.singletonList(root), List.of());
    return out.toBytes();
  }

  private static Map<String, byte[]> made() throws Exception {
    Map<String, byte[]> made = new TreeMap<>();
    made.put("ping", frame(Type.PING, new Out()));
    made.put("hello", frame(Type.HELLO, new Out().i32(1).i32(17).i64(1).i64(2).i32(3)));
    made.put("class", frame(Type.CLASS, new Out().name("a.B")));
    made.put("refused", frame(Type.REFUSED, new Out().name("no")));
    made.put("text-latin", new Out().text("a\u00ff").toBytes());
    made.put("text-wide", new Out().text("\u20ac").toBytes());
    made.put("plain", Plain.write(new Out(), new Object[] {null, 5, "a", Thread.State.NEW}, Heap.ofServer(Rules.ofServer(name -> false), TYPES)).toBytes());
    made.put("delta-null", delta(null));
    made.put("delta-string", delta(new StringBuilder("hi").append(0).toString()));
    made.put("delta-box", delta(5L));
    made.put("delta-list", delta(new ArrayList<>(List.of("a", "a"))));
    made.put("delta-array", delta(new int[] {1, -1}));
    return made;
  }

  private static final class Two {
    int left;
    int right;
    final int[] numbers = new int[2];
    final Object[] names = new Object[2];
  }

  private static void exchange(Heap from, Heap to, List<?> roots) {
    Out out = new Out();
    from.write(out, roots, List.of());
    to.read(new In(out.toBytes()));
  }

  /** Both ends change other parts of an object: each hears of what the other changed. */
  private static boolean meets() {
    Heap server = Heap.ofServer(Rules.ofServer(name -> true), TYPES);
    Heap function = Heap.ofFunction(TYPES);
    Two here = new Two();
    exchange(server, function, List.of(here));
    Two there = (Two) function.object(server.idOf(here));
    there.left = 1;
    there.numbers[0] = 1;
    there.names[0] = 1;
    here.right = 2;
    here.numbers[1] = 2;
    here.names[1] = 2;
    exchange(function, server, List.of());
    exchange(server, function, List.of());
    boolean ok = true;
    for (Two two : List.of(here, there)) {
      ok &= two.left == 1 && two.right == 2 && two.numbers[0] == 1 && two.numbers[1] == 2 && List.of(two.names).equals(List.of(1, 2));
    }
    return ok;
  }

  /** Compares with the file that is named. */
  public static void main(String[] args) throws Exception {
    Map<String, String> stated = new TreeMap<>();
    for (String line : Files.readAllLines(Path.of(args[0]))) {
      String[] cells = line.split("\\|");
      if (cells.length == 4 && cells[2].strip().matches("`[0-9a-f ]+`")) {
        stated.put(cells[1].strip(), cells[2].strip().replaceAll("[` ]", ""));
      }
    }
    Map<String, String> made = new TreeMap<>();
    made().forEach((name, bytes) -> made.put(name, HexFormat.of().formatHex(bytes)));
    boolean ok = stated.equals(made);
    Heap heap = Heap.ofFunction(TYPES);
    heap.read(new In(HexFormat.of().parseHex(made.get("delta-list"))));
    ok &= heap.object(1).equals(List.of("a", "a"));
    Link link = new Link(new ByteArrayInputStream(HexFormat.of().parseHex(made.get("ping") + made.get("refused"))), OutputStreams.NONE, () -> {});
    Link.Received received = link.receive();
    ok &= received.type() == Type.REFUSED && received.body().name().equals("no") && received.body().isAtEnd();
    System.out.println(meets() ? "ok meets" : "FAILED meets");
    if (!ok) {
      made.forEach((name, hex) -> System.out.println("| " + name + " | `" + hex.replaceAll("(.{8})(?=.)", "$1 ") + "` | "));
    }
    System.out.println(ok ? "ok vectors" : "FAILED vectors: the lines above are what is written");
    System.exit(ok && meets() ? 0 : 1);
  }

  private static final class OutputStreams {
    static final java.io.OutputStream NONE = java.io.OutputStream.nullOutputStream();
  }
}
