package dev.forerun.offload.graph;

import dev.forerun.offload.wire.Refused;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;

/**
 * Decides how objects of a class cross. JDK classes are packed only if they are on the tested list; no object with native state is
 * ever copied.
 */
public final class Rules {
  /** JDK classes whose fields are packed as they are: they hold nothing of the process. */
  private static final Set<String> PACKED =
      Set.of(
          "java.math.BigInteger", "java.math.BigDecimal", "java.math.MathContext", "java.util.UUID",
          "java.time.LocalDate", "java.time.LocalTime", "java.time.LocalDateTime", "java.time.Instant", "java.time.Duration",
          "java.time.Period", "java.time.Year", "java.time.YearMonth", "java.time.MonthDay", "java.time.OffsetDateTime",
          "java.time.OffsetTime", "java.time.ZonedDateTime", "java.util.Optional", "java.util.OptionalInt",
          "java.util.OptionalLong", "java.util.OptionalDouble", "java.lang.Object", "java.lang.StackTraceElement",
          "java.util.HashSet", "java.util.LinkedHashSet", "java.util.TreeSet", "java.util.Arrays$ArrayList",
          "java.util.Collections$UnmodifiableCollection", "java.util.Collections$UnmodifiableList",
          "java.util.Collections$UnmodifiableRandomAccessList", "java.util.Collections$UnmodifiableSet",
          "java.util.Collections$UnmodifiableMap", "java.util.Collections$SingletonList", "java.util.Collections$SingletonSet",
          "java.util.Collections$SingletonMap", "java.util.ImmutableCollections$List12", "java.util.ImmutableCollections$ListN",
          "java.util.AbstractMap$SimpleEntry", "java.util.AbstractMap$SimpleImmutableEntry", "java.util.KeyValueHolder",
          "java.util.Collections$ReverseComparator", "java.util.Collections$ReverseComparator2",
          "java.lang.String$CaseInsensitiveComparator");

  /** Packed JDK classes whose objects change; those of the others never do. */
  private static final Set<String> CHANGING =
      Set.of("java.util.AbstractMap$SimpleEntry");

  /**
   * JDK classes of which a generated subclass may stand for an object, also where JDK code gets it: that code reaches them by methods
   * alone, never by their private fields.
   */
  private static final Set<String> EXTENDED =
      Set.of(
          "java.util.concurrent.ConcurrentHashMap", "java.util.concurrent.ConcurrentSkipListMap",
          "java.util.concurrent.ConcurrentLinkedQueue", "java.util.concurrent.ConcurrentLinkedDeque",
          "java.util.concurrent.LinkedBlockingQueue", "java.util.concurrent.LinkedBlockingDeque",
          "java.util.concurrent.ArrayBlockingQueue", "java.util.concurrent.PriorityBlockingQueue",
          "java.util.concurrent.CopyOnWriteArrayList", "java.util.concurrent.CopyOnWriteArraySet",
          "java.util.Vector", "java.util.Hashtable", "java.util.Random", "java.util.ArrayList", "java.util.HashMap",
          "java.util.LinkedHashMap", "java.util.AbstractMap", "java.util.AbstractList", "java.util.AbstractCollection",
          "java.util.AbstractSet", "java.util.Dictionary");

  private final Predicate<String> application;
  private final boolean server;
  private final ConcurrentHashMap<Class<?>, Kind> kinds = new ConcurrentHashMap<>();

  private Rules(boolean server, Predicate<String> application) {
    this.server = server;
    this.application = application;
  }

  /** The rules of a server, whose application classes are those whose names the predicate accepts. */
  public static Rules ofServer(Predicate<String> application) {
    return new Rules(true, application);
  }

  /** The rules of a function: what was made there moves to the server, whatever non-JDK class it has. */
  public static Rules ofFunction() {
    return new Rules(false, name -> true);
  }

  /** Whether a class belongs to the JDK. */
  public static boolean isJdk(Class<?> type) {
    Class<?> element = type;
    while (element.isArray()) {
      element = element.getComponentType();
    }
    if (Proxy.isProxyClass(element) || element.isHidden()) {
      return false;
    }
    ClassLoader loader = element.getClassLoader();
    return loader == null || loader == ClassLoader.getPlatformClassLoader();
  }

  /** How an object crosses; raises Refused for one that cannot. */
  public Kind of(Object object) {
    Class<?> type = object.getClass();
    if (Constants.nameOf(object) != null) {
      return Kind.CONSTANT;
    }
    Kind kind = kinds.get(type);
    if (kind == null) {
      kind = decide(object, type);
      kinds.put(type, kind);
    }
    return kind;
  }

  private Kind decide(Object object, Class<?> type) {
    if (type == String.class) {
      return Kind.STRING;
    }
    if (Boxes.isBox(type)) {
      return Kind.BOX;
    }
    if (object instanceof Enum && isJdk(type)) {
      return Kind.ENUM;
    }
    if (object instanceof Class) {
      return Kind.CLASS;
    }
    if (type.isArray()) {
      return type.getComponentType().isPrimitive() ? Kind.PRIMITIVES : Kind.ARRAY;
    }
    if (Texts.isText(object)) {
      return Kind.TEXT;
    }
    if (Contents.isKnown(type) || Contents.isDerived(type) && (!server || isApplication(type))) {
      return Kind.COLLECTION;
    }
    if (object instanceof ClassLoader || object instanceof Thread) {
      throw new Refused("an object of " + type.getName() + " cannot cross");
    }
    if (Lambdas.isLambda(type)) {
      return Kind.LAMBDA;
    }
    if (isPacked(type)) {
      return Kind.OBJECT;
    }
    if (!server) {
      throw new Refused("an object of " + type.getName() + " was made in the function and cannot move to the server");
    }
    return isOpaque(type) ? Kind.OPAQUE : Kind.STUB;
  }

  /** Whether objects of a class that were born at this end are packed field by field. */
  boolean isPacked(Class<?> type) {
    return isPackable(type) && (!server || isJdk(type) || type.isRecord() || type.isEnum() || isEnumBody(type)
        || Throwable.class.isAssignableFrom(type) || isApplication(type));
  }

  private static boolean isEnumBody(Class<?> type) {
    return type.getSuperclass().isEnum();
  }

  /** Whether objects of a class can be packed field by field: all that is above it is known. */
  static boolean isPackable(Class<?> type) {
    if (type.isArray() || type.isHidden() || type.isInterface() || Modifier.isAbstract(type.getModifiers()) && !type.isEnum()) {
      return false;
    }
    if (isJdk(type)) {
      return PACKED.contains(type.getName()) || isPlainThrowable(type);
    }
    if (Proxy.isProxyClass(type) || isGenerated(type)) {
      return false;
    }
    Class<?> base = type.getSuperclass();
    while (!isJdk(base)) {
      base = base.getSuperclass();
    }
    return base == Object.class || base == Record.class || base == Enum.class || isPlainThrowable(base);
  }

  private boolean isApplication(Class<?> type) {
    for (Class<?> owner = type; !isJdk(owner); owner = owner.getSuperclass()) {
      if (!application.test(owner.getName())) {
        return false;
      }
    }
    return true;
  }

  private static boolean isPlainThrowable(Class<?> type) {
    return Throwable.class.isAssignableFrom(type)
        && (type.getPackageName().equals("java.lang")
            || type.getPackageName().equals("java.util")
            || type.getPackageName().equals("java.io")
            || type.getPackageName().equals("java.util.concurrent")
            || type.getPackageName().equals("java.time")
            || type.getPackageName().equals("java.sql"));
  }

  /** A class that a framework made at run time, to intercept calls. */
  static boolean isGenerated(Class<?> type) {
    String name = type.getName();
    return name.contains("$$") || name.contains("$HibernateProxy") || name.contains("ByteBuddy") || name.contains("_$$_");
  }

  /** Whether an object of a packed class may change, so that it is looked at in each exchange. */
  static boolean isTracked(Class<?> type) {
    return !isJdk(type) && !type.isRecord() || CHANGING.contains(type.getName());
  }

  /**
   * Whether no generated class can stand for a pinned object of a class: JDK code might read its empty fields, or call a method that
   * cannot be overridden.
   */
  static boolean isOpaque(Class<?> type) {
    if (Proxy.isProxyClass(type) || !isJdk(type)) {
      return false;
    }
    return Modifier.isPublic(type.getModifiers()) ? !isExtended(type) : !hasPublicInterface(type);
  }

  /** Whether a generated class for a pinned class of other origin has such a class of the JDK above it. */
  public static boolean hasOpaqueBase(Class<?> type) {
    Class<?> base = type;
    while (base != null && !isJdk(base)) {
      base = base.getSuperclass();
    }
    return base != null && base != Object.class && base != Proxy.class && base != Record.class && !isExtended(base)
        && !isPlainThrowable(base) && Modifier.isPublic(base.getModifiers());
  }

  private static boolean isExtended(Class<?> type) {
    if (!EXTENDED.contains(type.getName()) || Modifier.isFinal(type.getModifiers())) {
      return false;
    }
    for (Class<?> owner = type; owner != Object.class; owner = owner.getSuperclass()) {
      for (var method : owner.getDeclaredMethods()) {
        int modifiers = method.getModifiers();
        if (Modifier.isFinal(modifiers) && !Modifier.isStatic(modifiers) && (modifiers & (Modifier.PUBLIC | Modifier.PROTECTED)) != 0) {
          return false;
        }
      }
    }
    return true;
  }

  /** Whether a generated class may implement an interface of the JDK. */
  public static boolean isImplementable(Class<?> face) {
    return Modifier.isPublic(face.getModifiers()) && !face.isSealed() && face.getModule().isExported(face.getPackageName());
  }

  private static boolean hasPublicInterface(Class<?> type) {
    for (Class<?> owner = type; owner != null; owner = owner.getSuperclass()) {
      for (Class<?> one : owner.getInterfaces()) {
        if (isImplementable(one) && one.getMethods().length > 0 && one != Comparable.class) {
          return true;
        }
      }
    }
    return false;
  }
}
