package sample;

import dev.forerun.offload.agent.Entry;
import dev.forerun.offload.agent.Functions;
import dev.forerun.offload.agent.OffloadLostException;
import dev.forerun.offload.agent.Offloader;
import dev.forerun.offload.function.Instance;
import dev.forerun.offload.graph.Rules;
import dev.forerun.offload.wire.Link;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.lang.reflect.InvocationTargetException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * A function that is lost before each frame that it sends, and within each: it is killed, or stops. The call has its result with each
 * effect once, or is lost with none twice, and its monitor is free.
 */
public final class Lost {
  private static final int PING = 2;
  private static final int LOCK = 6;
  private static final int SILENCE_MILLIS = 300;
  private static final String NAME = "sample.app.Stages";

  private Lost() {}

  /** How a function is lost. */
  enum Fault {
    KILLED, KILLED_WITHIN, STOPPED, STOPPED_WITHIN
  }

  /** Passes frames on, each of them one write, until the fault. */
  private static final class Faulty extends FilterOutputStream {
    private final Fault fault;
    private final int at;
    private final Socket socket;
    private int sent;
    private int locked = Integer.MAX_VALUE;

    Faulty(OutputStream to, Socket socket, Fault fault, int at) {
      super(to);
      this.socket = socket;
      this.fault = fault;
      this.at = at;
    }

    @Override
    public synchronized void write(byte[] bytes, int from, int count) throws IOException {
      boolean counts = bytes[from + 4] != PING;
      if (sent < at || !counts && sent == at) {
        locked = bytes[from + 4] == LOCK ? Math.min(locked, sent) : locked;
        sent += counts ? 1 : 0;
        out.write(bytes, from, count);
        return;
      }
      boolean isFirst = sent == at;
      sent++;
      if (isFirst && (fault == Fault.KILLED_WITHIN || fault == Fault.STOPPED_WITHIN)) {
        out.write(bytes, from, count / 2);
        out.flush();
      }
      if (fault == Fault.KILLED || fault == Fault.KILLED_WITHIN) {
        socket.close();
      }
      throw new InterruptedIOException("lost");
    }
  }

  /** Each call has an instance of its own. */
  private static final class Function implements Functions {
    private Fault fault = Fault.KILLED;
    private int at = Integer.MAX_VALUE;
    private Faulty last;

    @Override
    public Link open() throws IOException {
      try (ServerSocket listening = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
        Socket server = new Socket(listening.getInetAddress(), listening.getLocalPort());
        Socket function = listening.accept();
        last = new Faulty(function.getOutputStream(), function, fault, at);
        Link link = new Link(function.getInputStream(), last, function);
        new Thread(null, () -> serve(link), "function", 1 << 20).start();
        server.setSoTimeout(at < Integer.MAX_VALUE && (fault == Fault.STOPPED || fault == Fault.STOPPED_WITHIN) ? SILENCE_MILLIS : 0);
        return new Link(server.getInputStream(), server.getOutputStream(), server);
      }
    }

    private static void serve(Link link) {
      try {
        new Instance().serve(link);
      } catch (IOException | RuntimeException | Error e) {
        return; // killed: it closed its stream; stopped: the stream stays open
      }
    }
  }

  /** One application, and what a call of it came to. */
  private record Outcome(String kind, String wrong) {}

  private static List<?> field(Object object, String name) throws ReflectiveOperationException {
    return (List<?>) object.getClass().getField(name).get(object);
  }

  private static Outcome call(Function function) throws Exception {
    ClassLoader loader = new Pair.Loader(Set.of(NAME + "#work"));
    Object log = loader.loadClass("sample.library.Log").getConstructor().newInstance();
    Class<?> store = loader.loadClass("sample.library.Store");
    Map<String, Integer> saves = new HashMap<>();
    Object counting =
        java.lang.reflect.Proxy.newProxyInstance(
            loader, new Class<?>[] {store}, (proxy, method, parameters) -> saves.merge(method.getName(), 1, Integer::sum) == 0 ? 0 : null);
    Class<?> type = loader.loadClass(NAME);
    Object stages = type.getConstructors()[0].newInstance(log, counting);
    Offloader offloader = new Offloader(function, Rules.ofServer(one -> one.startsWith("sample.app.")), Set.of("sample.library.Store#names"), Map.of(), line -> {});
    Entry.use(offloader);
    String result;
    boolean isLost = false;
    try {
      result = (String) type.getMethod("work", int.class).invoke(stages, 3);
    } catch (InvocationTargetException e) {
      isLost = e.getCause() instanceof OffloadLostException;
      result = e.getCause().toString();
    } finally {
      Entry.use(null);
    }
    List<String> all = List.of("begin 3", "sum 3 of here", "counted", "saved");
    List<?> lines = field(log, "lines");
    int saved = saves.getOrDefault("save", 0);
    String seen = "%s, lines %s, saved %d, refused %s".formatted(result.substring(0, Math.min(200, result.length())), lines, saved, offloader.refused());
    if (!isFree(stages) || (boolean) type.getMethod("isLocked").invoke(stages)) {
      return new Outcome("wrong", "its monitor or its lock is held: " + seen);
    }
    if (isLost) {
      boolean ok = saved <= 1 && lines.equals(all.subList(0, lines.size())) && (saved == 1 || lines.size() < 4);
      return new Outcome("lost", ok ? null : seen);
    }
    boolean ok = result.startsWith("[3] 3 1 x") && result.length() > 100_000 && lines.equals(all) && saved == 1 && offloader.refused().isEmpty();
    return new Outcome(offloader.offloaded() == 1 ? "offloaded" : "local", ok ? null : seen);
  }

  private static boolean isFree(Object monitor) throws InterruptedException {
    Thread thread =
        new Thread(
            () -> {
              synchronized (monitor) {
                monitor.notifyAll();
              }
            });
    thread.setDaemon(true);
    thread.start();
    thread.join(60_000);
    return !thread.isAlive();
  }

  /** Prints "ok lost" at the end. */
  public static void main(String[] args) throws Exception {
    System.setProperty("sample.only", "here");
    Function function = new Function();
    Outcome whole = call(function);
    int frames = function.last.sent;
    int visible = function.last.locked; // the frame with the first effect that others see
    boolean ok = whole.kind.equals("offloaded") && whole.wrong == null;
    Map<String, Integer> kinds = new TreeMap<>();
    for (Fault fault : Fault.values()) {
      int step = fault == Fault.KILLED || fault == Fault.KILLED_WITHIN ? 1 : 3; // one that stopped is waited for
      for (int at = 0; at < frames && ok; at += step) {
        function.fault = fault;
        function.at = at;
        Outcome outcome = call(function);
        kinds.merge(outcome.kind, 1, Integer::sum);
        boolean isKilled = fault == Fault.KILLED || fault == Fault.KILLED_WITHIN; // one that stopped may be given up sooner
        ok = outcome.wrong == null && (isKilled ? outcome.kind.equals(at <= visible ? "local" : "lost") : !outcome.kind.equals("offloaded"));
        System.out.println("# %s at frame %d of %d: %s%s".formatted(fault, at, frames, outcome.kind, outcome.wrong == null ? "" : ", " + outcome.wrong));
      }
    }
    ok &= visible < frames;
    System.out.println(ok ? "ok lost" : "FAILED lost: " + whole + " " + kinds);
    System.exit(ok ? 0 : 1);
  }
}
