package sample;

import dev.forerun.offload.agent.Entry;
import dev.forerun.offload.agent.Functions;
import dev.forerun.offload.agent.Offloader;
import dev.forerun.offload.function.Instance;
import dev.forerun.offload.graph.Rules;
import dev.forerun.offload.weave.ServerWeaver;
import dev.forerun.offload.wire.Link;
import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.WeakReference;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * A server and a function in one process. Each root runs twice here and twice in the function, on copies of the application with
 * loaders of their own; results and states are compared as text. It prints "ok NAME" or "FAILED NAME: why" for each.
 */
public final class Pair {
  private Pair() {}

  /** Loads the application's classes, changed as the agent does. */
  static final class Loader extends ClassLoader {
    private final Set<String> roots;
    private final boolean isFollowed;

    Loader(Set<String> roots) {
      this(roots, false);
    }

    Loader(Set<String> roots, boolean isFollowed) {
      super(Pair.class.getClassLoader());
      this.roots = roots;
      this.isFollowed = isFollowed;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      if (!name.startsWith("sample.app.") && !name.startsWith("sample.library.")) {
        return super.loadClass(name, resolve);
      }
      Class<?> known = findLoadedClass(name);
      return known != null ? known : findClass(name);
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
      try (InputStream in = getResourceAsStream(name.replace('.', '/') + ".class")) {
        byte[] original = in.readAllBytes();
        byte[] woven = name.startsWith("sample.app.") ? ServerWeaver.weave(original, roots, isFollowed) : null;
        byte[] file = woven != null ? woven : original;
        return defineClass(name, file, 0, file.length);
      } catch (IOException e) {
        throw new ClassNotFoundException(name, e);
      }
    }
  }

  /** Loads the classes of a function: their static fields are those of one process. */
  private static final class Process extends ClassLoader {
    private static final String FUNCTION = "dev.forerun.offload.function.";

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      Class<?> known = name.startsWith(FUNCTION) ? findLoadedClass(name) : super.loadClass(name, resolve);
      return known != null ? known : findClass(name);
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
      try (InputStream in = Pair.class.getClassLoader().getResourceAsStream(name.replace('.', '/') + ".class")) {
        byte[] file = in.readAllBytes();
        return defineClass(name, file, 0, file.length);
      } catch (IOException e) {
        throw new ClassNotFoundException(name, e);
      }
    }
  }

  /** A function in a thread of this process, with classes of its own. At its end what is under way to the server is lost, as when its activation ends. */
  static final class Here implements Functions {
    private final Object instance;

    Here() {
      try {
        instance = new Process().loadClass(Instance.class.getName()).getConstructor().newInstance();
      } catch (ReflectiveOperationException e) {
        throw new IllegalStateException(e);
      }
    }

    @Override
    public Link open() throws IOException {
      try (ServerSocket at = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
        Socket server = new Socket(at.getInetAddress(), at.getLocalPort());
        Socket function = at.accept();
        new Thread(null, () -> serve(function), "function", 1 << 20).start();
        return new Link(server.getInputStream(), server.getOutputStream(), server);
      }
    }

    private void serve(Socket socket) {
      try (Link link = new Link(socket.getInputStream(), socket.getOutputStream(), socket)) {
        instance.getClass().getMethod("serve", Link.class).invoke(instance, link);
        socket.setSoLinger(true, 0);
      } catch (IOException | ReflectiveOperationException e) {
        System.out.println("# the function ended: " + e);
      }
    }
  }

  private static Object shop(ClassLoader loader, String name) throws ReflectiveOperationException {
    Class<?> type = loader.loadClass(name);
    var constructor = type.getConstructors()[0];
    if (constructor.getParameterCount() == 0) {
      return constructor.newInstance();
    }
    Class<?> store = loader.loadClass("sample.library.Store");
    Object base = loader.loadClass("sample.library.Base").getConstructor(String.class).newInstance("base");
    return constructor.newInstance(store.getMethod("make", ClassLoader.class).invoke(null, loader), base);
  }

  private static String outcome(Object shop, Method method) throws IllegalAccessException {
    Object[] parameters = {};
    if (method.getParameterCount() > 0) {
      parameters = new Object[] {1, 2L, 3.5, true, 'x', "text", new int[3], new ArrayList<>(List.of("h"))};
    }
    String result;
    try {
      result = Picture.of(method.invoke(shop, parameters));
    } catch (InvocationTargetException e) {
      result = "thrown " + Picture.of(e.getCause());
    }
    return result + "\n" + Picture.of(parameters) + "\n" + Picture.of(shop) + "\n" + Picture.ofStatics(shop.getClass());
  }

  private static Set<String> roots(String name) throws ClassNotFoundException {
    Set<String> roots = new TreeSet<>();
    for (Method method : Class.forName(name).getDeclaredMethods()) {
      if (method.getReturnType() == Object.class && java.lang.reflect.Modifier.isPublic(method.getModifiers())) {
        roots.add(name + "#" + method.getName());
      }
    }
    return roots;
  }

  private static Method method(Object shop, String root) {
    return Arrays.stream(shop.getClass().getDeclaredMethods())
        .filter(method -> root.endsWith("#" + method.getName()))
        .findFirst()
        .orElseThrow();
  }

  private static String check(String root, Offloader offloader, Object here, Object there, boolean isSupported, List<String> log) throws Exception {
    for (int i = 0; i < 2; i++) {
      Entry.use(null);
      String expected = outcome(here, method(here, root));
      Entry.use(offloader);
      long before = offloader.offloaded();
      String got = outcome(there, method(there, root));
      Entry.use(null);
      if (!expected.equals(got)) {
        return "run " + i + " differs\n" + Picture.difference(expected, got) + log;
      }
      if (offloader.offloaded() - before != (isSupported ? 1 : 0)) {
        return (isSupported ? "it ran here: " : "it ran in the function") + log;
      }
    }
    boolean isNamed = offloader.refused().values().stream().anyMatch(reason -> reason.length() > 20);
    return isSupported || isNamed ? null : "no reason is named: " + log;
  }

  private static boolean all(String name, boolean isSupported, String only) throws Exception {
    boolean ok = true;
    Set<String> roots = roots(name);
    Functions function = new Here();
    Object here = shop(new Loader(roots), name);
    Object there = shop(new Loader(roots), name);
    List<String> log = new ArrayList<>();
    Offloader offloader = new Offloader(function, Rules.ofServer(one -> one.startsWith("sample.app.")), Set.of(), Map.of(), log::add);
    for (String root : roots) {
      if (!root.contains(only)) {
        continue;
      }
      if (!isSupported) { // states are not to be carried on
        here = shop(new Loader(roots), name);
        there = shop(new Loader(roots), name);
        offloader = new Offloader(function, Rules.ofServer(one -> one.startsWith("sample.app.")), Set.of(), Map.of(), log::add);
      }
      log.clear();
      String wrong = check(root, offloader, here, there, isSupported, log);
      System.out.println(wrong == null ? "ok " + root : "FAILED " + root + ": " + wrong);
      if (!isSupported && wrong == null) {
        System.out.println("# " + log.get(0));
      }
      ok &= wrong == null;
    }
    return ok;
  }

  /** The objects of an instance that was not heard of for long are not kept. */
  private static boolean forgets() throws ReflectiveOperationException {
    String name = "sample.app.Small";
    ClassLoader loader = new Loader(Set.of(name + "#count"));
    Offloader offloader = new Offloader(() -> new Here().open(), Rules.ofServer(one -> one.startsWith("sample.app.")), Set.of(), Map.of(), System.out::println);
    Entry.use(offloader);
    WeakReference<?> first = counted(loader, name);
    System.gc();
    boolean isKept = first.get() != null;
    for (int i = 1; i < 100; i++) {
      counted(loader, name);
    }
    Entry.use(null);
    System.gc();
    boolean ok = isKept && first.get() == null && offloader.offloaded() == 100;
    System.out.println(ok ? "ok forgets" : "FAILED forgets: kept %s, offloaded %d".formatted(isKept, offloader.offloaded()));
    return ok;
  }

  /** Calls of a virtual thread are offloaded, too. An offloader that was stopped has calls run here. */
  private static boolean isVirtual() throws Exception {
    String name = "sample.app.Small";
    Object small = new Loader(Set.of(name + "#count")).loadClass(name).getConstructor().newInstance();
    Offloader offloader = new Offloader(new Here(), Rules.ofServer(one -> one.startsWith("sample.app.")), Set.of(), Map.of(), line -> {});
    Entry.use(offloader);
    List<Object> results = new ArrayList<>();
    Runnable call =
        () -> {
          try {
            results.add(small.getClass().getMethod("count", int.class).invoke(small, 2));
          } catch (ReflectiveOperationException e) {
            results.add(e.getCause());
          }
        };
    Thread thread = new Thread(call);
    if (Runtime.version().feature() >= 21) {
      Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
      thread = (Thread) Class.forName("java.lang.Thread$Builder").getMethod("unstarted", Runnable.class).invoke(builder, call);
    }
    thread.start();
    thread.join();
    offloader.stop("a class was redefined");
    call.run();
    Entry.use(null);
    boolean ok = results.equals(List.of("[1, 2] of 3", "[1, 2, 1, 2] of 6")) && offloader.offloaded() == 1;
    System.out.println(ok ? "ok virtual" : "FAILED virtual: %s, offloaded %d".formatted(results, offloader.offloaded()));
    return ok;
  }

  private static WeakReference<?> counted(ClassLoader loader, String name) throws ReflectiveOperationException {
    Object small = loader.loadClass(name).getConstructor().newInstance();
    small.getClass().getMethod("count", int.class).invoke(small, 3);
    return new WeakReference<>(small);
  }

  /** Runs all, or those whose names contain the parameter. */
  public static void main(String[] args) throws Exception {
    System.setProperty("sample.only", "here");
    String only = args.length > 0 ? args[0] : "#";
    boolean ok = all("sample.app.Shop", true, only);
    ok &= all("sample.app.Rows", true, only);
    ok &= all("sample.app.Nasty", false, only);
    ok &= forgets();
    ok &= isVirtual();
    System.exit(ok ? 0 : 1);
  }
}
