package dev.forerun.offload.graph;

import java.util.Map;
import java.util.Set;

/** Knows methods that the server carries out: methods that write a line of a log, and methods that only tell something. */
public final class Effects {
  private static final Set<String> LOGGERS =
      Set.of(
          "org.slf4j.Logger", "org.apache.commons.logging.Log", "org.apache.logging.log4j.Logger", "java.util.logging.Logger",
          "java.lang.System$Logger");

  private static final Set<String> LINES =
      Set.of("trace", "debug", "info", "warn", "error", "fatal", "log", "severe", "warning", "config", "fine", "finer", "finest");

  private static final Map<String, Set<String>> TELLING =
      Map.of(
          "java/lang/System", Set.of("getProperty", "getenv", "getProperties", "lineSeparator"),
          "java/lang/Boolean", Set.of("getBoolean"),
          "java/lang/Integer", Set.of("getInteger"),
          "java/lang/Long", Set.of("getLong"));

  private static final Set<String> READING =
      Set.of("get", "getOrDefault", "containsKey", "contains", "size", "isEmpty", "keySet", "values", "entrySet", "iterator", "hasNext", "toArray",
          "getKey", "getValue", "firstKey", "lastKey", "peek", "intValue", "longValue", "getPlain", "getAcquire");

  private static final ClassValue<Boolean> IS_LOGGER =
      new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> type) {
          return isLogger(type);
        }
      };

  private Effects() {}

  private static boolean isLogger(Class<?> type) {
    if (type == null) {
      return false;
    }
    boolean found = LOGGERS.contains(type.getName()) || isLogger(type.getSuperclass());
    for (Class<?> face : type.getInterfaces()) {
      found |= isLogger(face);
    }
    return found;
  }

  /** Whether a method of a class writes a line of a log. */
  public static boolean isLine(Class<?> receiver, String name, String descriptor) {
    return LINES.contains(name) && descriptor.endsWith(")V") && IS_LOGGER.get(receiver);
  }

  /** Whether a method reads a collection or an atomic variable of the JDK. */
  public static boolean reads(Class<?> receiver, String name) {
    return Rules.isJdk(receiver) && receiver.getPackageName().startsWith("java.util") && READING.contains(name)
        && (java.util.Collection.class.isAssignableFrom(receiver) || java.util.Map.class.isAssignableFrom(receiver)
            || java.util.Iterator.class.isAssignableFrom(receiver) || java.util.Map.Entry.class.isAssignableFrom(receiver)
            || receiver.getPackageName().equals("java.util.concurrent.atomic"));
  }

  /** Whether a method only tells something. The receiver's class is null for a static method, the owner an internal name. */
  public static boolean tells(Class<?> receiver, String owner, String name) {
    if (receiver == null) {
      return TELLING.getOrDefault(owner, Set.of()).contains(name);
    }
    if (owner.equals("java/lang/Object")) {
      return name.equals("getClass");
    }
    boolean asks = name.startsWith("is") && name.endsWith("Enabled") || name.equals("isLoggable") || name.equals("getName");
    return asks && IS_LOGGER.get(receiver);
  }
}
