package dev.forerun.offload.weave;

import java.util.Map;
import java.util.Set;
import org.objectweb.asm.Type;

/** Calls of the JDK that mean something else in a function. */
final class Calls {
  /** Static methods that the server carries out: they tell or change something of its process. "*": all of the class. */
  private static final Map<String, Set<String>> ON_SERVER =
      Map.of(
          "java/lang/System",
              Set.of("getProperty", "getenv", "getProperties", "setProperty", "clearProperty", "lineSeparator"),
          "java/lang/Boolean", Set.of("getBoolean"),
          "java/lang/Integer", Set.of("getInteger"),
          "java/lang/Long", Set.of("getLong"),
          "java/lang/Thread", Set.of("interrupted"),
          "java/nio/file/Files", Set.of("*"),
          "java/sql/DriverManager", Set.of("*"),
          "java/util/ServiceLoader", Set.of("*"),
          "java/lang/management/ManagementFactory", Set.of("*"));

  /** What is refused when it is called: by class, "*" or names of methods. */
  private static final Map<String, Set<String>> REFUSED =
      Map.ofEntries(
          Map.entry("java/lang/System", Set.of("exit", "load", "loadLibrary", "setOut", "setErr", "setIn", "setSecurityManager")),
          Map.entry("java/lang/Runtime", Set.of("exit", "halt", "exec", "load", "loadLibrary", "addShutdownHook")),
          Map.entry("java/lang/Thread", Set.of("<init>", "start", "startVirtualThread", "ofVirtual", "ofPlatform", "setContextClassLoader",
              "currentThread", "sleep")),
          Map.entry("java/lang/ThreadLocal", Set.of("<init>", "withInitial")),
          Map.entry("java/lang/InheritableThreadLocal", Set.of("*")),
          Map.entry("java/lang/ProcessBuilder", Set.of("*")),
          Map.entry("java/lang/ClassLoader", Set.of("*")),
          Map.entry("java/net/URLClassLoader", Set.of("*")),
          Map.entry("java/util/concurrent/Executors", Set.of("*")),
          Map.entry("java/util/concurrent/ThreadPoolExecutor", Set.of("<init>")),
          Map.entry("java/util/concurrent/ForkJoinPool", Set.of("*")),
          Map.entry("java/util/concurrent/CompletableFuture", Set.of("runAsync", "supplyAsync", "thenApplyAsync", "thenAcceptAsync",
              "thenRunAsync", "thenCombineAsync", "thenComposeAsync", "handleAsync", "whenCompleteAsync")),
          Map.entry("java/util/Timer", Set.of("*")),
          Map.entry("java/util/concurrent/TimeUnit", Set.of("sleep", "timedWait", "timedJoin")),
          Map.entry("java/util/concurrent/locks/LockSupport", Set.of("*")),
          Map.entry("java/util/Collection", Set.of("parallelStream")),
          Map.entry("java/util/List", Set.of("parallelStream")),
          Map.entry("java/util/Set", Set.of("parallelStream")),
          Map.entry("java/util/stream/BaseStream", Set.of("parallel")),
          Map.entry("java/util/stream/Stream", Set.of("parallel")),
          Map.entry("java/util/stream/IntStream", Set.of("parallel")),
          Map.entry("java/util/stream/LongStream", Set.of("parallel")),
          Map.entry("java/util/stream/DoubleStream", Set.of("parallel")),
          Map.entry("java/util/Arrays", Set.of("parallelSort", "parallelPrefix", "parallelSetAll")),
          Map.entry("java/io/File", Set.of("*")),
          Map.entry("java/io/FileInputStream", Set.of("*")),
          Map.entry("java/io/FileOutputStream", Set.of("*")),
          Map.entry("java/io/FileReader", Set.of("*")),
          Map.entry("java/io/FileWriter", Set.of("*")),
          Map.entry("java/io/RandomAccessFile", Set.of("*")),
          Map.entry("java/io/ObjectOutputStream", Set.of("*")),
          Map.entry("java/io/ObjectInputStream", Set.of("*")),
          Map.entry("java/nio/file/Path", Set.of("*")),
          Map.entry("java/nio/file/Paths", Set.of("*")),
          Map.entry("java/nio/channels/FileChannel", Set.of("open")),
          Map.entry("java/net/Socket", Set.of("*")),
          Map.entry("java/net/ServerSocket", Set.of("*")),
          Map.entry("java/net/DatagramSocket", Set.of("*")),
          Map.entry("java/net/URL", Set.of("*")),
          Map.entry("java/net/InetAddress", Set.of("*")),
          Map.entry("java/net/http/HttpClient", Set.of("newHttpClient", "newBuilder")),
          Map.entry("java/util/TimeZone", Set.of("setDefault")),
          Map.entry("java/util/Locale", Set.of("setDefault")),
          Map.entry("java/util/ResourceBundle", Set.of("*")),
          Map.entry("java/lang/Class", Set.of("getResource", "getResourceAsStream", "getClassLoader")),
          Map.entry("sun/misc/Unsafe", Set.of("*")),
          Map.entry("jdk/internal/misc/Unsafe", Set.of("*")),
          Map.entry("java/lang/StackWalker", Set.of("*")),
          Map.entry("java/lang/invoke/VarHandle", Set.of("*")),
          Map.entry("java/util/concurrent/atomic/AtomicIntegerFieldUpdater", Set.of("*")),
          Map.entry("java/util/concurrent/atomic/AtomicLongFieldUpdater", Set.of("*")),
          Map.entry("java/util/concurrent/atomic/AtomicReferenceFieldUpdater", Set.of("*")));

  private static final Set<String> REPLACED = Set.of("getClass", "identityHashCode", "wait", "notify", "notifyAll", "holdsLock", "sleep");

  /** Classes whose objects are never pinned opaquely, so that their methods are called as they are. */
  private static final Set<String> PLAIN =
      Set.of(
          "java/lang/String", "java/lang/Integer", "java/lang/Long", "java/lang/Double", "java/lang/Boolean", "java/lang/Character",
          "java/lang/Short", "java/lang/Byte", "java/lang/Float", "java/lang/Class", "java/lang/Math", "java/lang/Enum",
          "java/lang/Record", "java/math/BigInteger", "java/math/BigDecimal", "java/util/UUID", "java/lang/Throwable",
          "java/lang/StackTraceElement");

  private Calls() {}

  private static boolean names(Map<String, Set<String>> calls, String owner, String name) {
    Set<String> names = calls.get(owner);
    return names != null && (names.contains(name) || names.contains("*"));
  }

  static boolean isOnServer(String owner, String name) {
    return names(ON_SERVER, owner, name);
  }

  static boolean isRefused(String owner, String name) {
    return names(REFUSED, owner, name);
  }

  /** Whether a method is replaced where it is called, so that no method reference may name it. */
  static boolean isReplaced(String name) {
    return REPLACED.contains(name);
  }

  static boolean isPlain(Type type) {
    return type.getSort() < Type.ARRAY || type.getSort() == Type.OBJECT && PLAIN.contains(type.getInternalName())
        || type.getSort() == Type.ARRAY; // what arrays hold was guarded as it was stored
  }

  static boolean isPlain(String owner) {
    return owner.startsWith("[") || PLAIN.contains(owner);
  }

  /** Calls that read or write fields by themselves: a stand-in's are empty. */
  static boolean isByField(String owner) {
    return owner.equals("java/lang/reflect/Field") || owner.equals("java/lang/invoke/MethodHandle");
  }
}
