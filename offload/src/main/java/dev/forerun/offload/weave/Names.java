package dev.forerun.offload.weave;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import org.objectweb.asm.Type;

/** What class files refer to by name, looked up among the classes of the server. */
final class Names {
  private final ClassLoader loader;

  Names(ClassLoader loader) {
    this.loader = loader;
  }

  /** The class with an internal name; null if it is not there, as optional dependencies are not. */
  Class<?> type(String internal) {
    try {
      return Class.forName(internal.startsWith("[") ? internal.replace('/', '.') : internal.replace('/', '.'), false, loader);
    } catch (ClassNotFoundException | LinkageError e) {
      return null;
    }
  }

  static boolean isJdk(Class<?> type) {
    return dev.forerun.offload.graph.Rules.isJdk(type);
  }

  /** Whether a call reaches code of the JDK: the class that is named is the JDK's, or inherits the method from it. */
  boolean reachesJdk(String owner, String name, String descriptor) {
    Class<?> type = type(owner);
    if (type == null) {
      return owner.startsWith("java/");
    }
    if (isJdk(type)) {
      return true;
    }
    Method found = find(type, name, descriptor);
    return found != null && isJdk(found.getDeclaringClass());
  }

  private static Method find(Class<?> type, String name, String descriptor) {
    for (Class<?> owner = type; owner != null; owner = owner.getSuperclass()) {
      try {
        for (Method method : owner.getDeclaredMethods()) {
          if (method.getName().equals(name) && Type.getMethodDescriptor(method).equals(descriptor)) {
            return method;
          }
        }
      } catch (NoClassDefFoundError e) {
        return null; // a signature names a class of an optional dependency
      }
    }
    for (Class<?> owner = type; owner != null; owner = owner.getSuperclass()) {
      for (Class<?> face : owner.getInterfaces()) {
        Method method = find(face, name, descriptor);
        if (method != null) {
          return method;
        }
      }
    }
    return null;
  }

  /** Whether a field is volatile. */
  boolean isVolatile(String owner, String name) {
    for (Class<?> type = type(owner); type != null; type = type.getSuperclass()) {
      try {
        for (Field field : type.getDeclaredFields()) {
          if (field.getName().equals(name)) {
            return Modifier.isVolatile(field.getModifiers());
          }
        }
      } catch (NoClassDefFoundError e) {
        return true; // not known: the careful way
      }
    }
    return false;
  }
}
