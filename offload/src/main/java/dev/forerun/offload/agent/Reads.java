package dev.forerun.offload.agent;

import java.lang.annotation.Annotation;
import java.lang.reflect.Method;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Methods that only read, of objects that stay on the server. A call that used only such methods can be repeated. They are methods that the
 * user named, read-only transactions, and queries of repositories.
 */
final class Reads {
  private static final String TRANSACTIONAL = "org.springframework.transaction.annotation.Transactional";
  private static final String REPOSITORY = "org.springframework.data.repository.Repository";
  private static final String QUERY = "org.springframework.data.jpa.repository.Query";
  private static final Pattern QUERIES = Pattern.compile("(find|read|get|query|search|stream|count|exists)([A-Z].*)?");

  private final Set<String> named;

  /** Names are Class#method. */
  Reads(Set<String> named) {
    this.named = named;
  }

  /** Whether a method only reads when it is called on this object. */
  boolean isRead(Method method, Object target) {
    for (Class<?> owner = target.getClass(); owner != null; owner = owner.getSuperclass()) {
      if (isNamed(owner, method.getName()) || isReadOnly(owner, method)) {
        return true;
      }
    }
    return isQuery(method);
  }

  private boolean isNamed(Class<?> type, String method) {
    if (named.contains(type.getName() + "#" + method)) {
      return true;
    }
    for (Class<?> face : type.getInterfaces()) {
      if (isNamed(face, method)) {
        return true;
      }
    }
    return false;
  }

  /** The method's own annotation counts before its class's. */
  private static boolean isReadOnly(Class<?> owner, Method method) {
    try {
      Method declared = owner.getDeclaredMethod(method.getName(), method.getParameterTypes());
      Annotation own = annotation(declared.getAnnotations(), TRANSACTIONAL);
      Annotation stated = own != null ? own : annotation(owner.getAnnotations(), TRANSACTIONAL);
      return stated != null && Boolean.TRUE.equals(member(stated, "readOnly"));
    } catch (NoSuchMethodException | LinkageError e) {
      return false;
    }
  }

  /** A query of a Spring Data repository that its name tells, or a JPQL or SQL text that begins with select. */
  private static boolean isQuery(Method method) {
    if (method.isDefault() || !extendsRepository(method.getDeclaringClass())) {
      return false;
    }
    for (Annotation annotation : method.getAnnotations()) {
      String name = annotation.annotationType().getSimpleName();
      if (name.equals("Modifying") || name.equals("Procedure")) {
        return false;
      }
    }
    Annotation query = annotation(method.getAnnotations(), QUERY);
    return query == null
        ? QUERIES.matcher(method.getName()).matches()
        : String.valueOf(member(query, "value")).strip().toLowerCase(Locale.ROOT).startsWith("select");
  }

  private static boolean extendsRepository(Class<?> face) {
    if (face.getName().equals(REPOSITORY)) {
      return true;
    }
    for (Class<?> above : face.getInterfaces()) {
      if (extendsRepository(above)) {
        return true;
      }
    }
    return false;
  }

  private static Annotation annotation(Annotation[] all, String name) {
    for (Annotation one : all) {
      if (one.annotationType().getName().equals(name)) {
        return one;
      }
    }
    return null;
  }

  private static Object member(Annotation annotation, String name) {
    try {
      return annotation.annotationType().getMethod(name).invoke(annotation);
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }
}
