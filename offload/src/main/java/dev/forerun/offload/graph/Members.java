package dev.forerun.offload.graph;

import dev.forerun.offload.wire.Malformed;
import dev.forerun.offload.wire.Refused;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.util.Arrays;

/** Fields and methods that the other end names. */
public final class Members {
  private Members() {}

  /** The type that a method with a descriptor returns. */
  public static Class<?> resultType(String descriptor, ClassLoader loader) {
    return MethodType.fromMethodDescriptorString(descriptor, loader).returnType();
  }

  /** A method that a class declares, opened. The owner is an internal name. */
  public static Method method(String owner, String name, String descriptor, ClassLoader loader) throws ReflectiveOperationException {
    Class<?> type = Class.forName(owner.replace('/', '.'), false, loader);
    Class<?>[] parameters = MethodType.fromMethodDescriptorString(descriptor, loader).parameterArray();
    Class<?> result = resultType(descriptor, loader);
    Method found = find(type, name, parameters, result);
    if (found == null) {
      throw new NoSuchMethodException(owner + "." + name + descriptor);
    }
    return Memory.open(found);
  }

  private static Method find(Class<?> type, String name, Class<?>[] parameters, Class<?> result) {
    for (Class<?> owner = type; owner != null; owner = owner.getSuperclass()) {
      for (Method method : owner.getDeclaredMethods()) {
        if (method.getName().equals(name) && method.getReturnType() == result
            && Arrays.equals(method.getParameterTypes(), parameters)) {
          return method;
        }
      }
    }
    for (Class<?> owner = type; owner != null; owner = owner.getSuperclass()) {
      for (Class<?> face : owner.getInterfaces()) {
        Method method = find(face, name, parameters, result);
        if (method != null) {
          return method;
        }
      }
    }
    return type.isInterface() && type.getInterfaces().length == 0 ? find(Object.class, name, parameters, result) : null;
  }

  private static Slot slot(Object object, String owner, String name, ClassLoader loader) throws ReflectiveOperationException {
    for (Class<?> type = Class.forName(owner.replace('/', '.'), false, loader); type != null; type = type.getSuperclass()) {
      for (Slot slot : Slot.ofObjects(type)) {
        if (slot.owner() == type && slot.name().equals(name)) {
          if (!type.isInstance(object) || Rules.isJdk(type)) {
            throw new Malformed("an object has no field %s.%s".formatted(owner, name));
          }
          return slot;
        }
      }
    }
    throw new NoSuchFieldException(owner + "." + name);
  }

  /** The value of a field, boxed. */
  public static Object get(Object object, String owner, String name, ClassLoader loader) throws ReflectiveOperationException {
    Slot slot = slot(object, owner, name, loader);
    if (slot.isReference()) {
      return Memory.reference(object, slot.offset());
    }
    return Boxes.ofPrimitive(slot.type(), Memory.bits(object, slot));
  }

  /** Sets a field to a value, boxed. */
  public static void put(Object object, String owner, String name, ClassLoader loader, Object value) throws ReflectiveOperationException {
    Slot slot = slot(object, owner, name, loader);
    if (!slot.isReference()) {
      Memory.bits(object, slot, Boxes.bitsOf(value));
      return;
    }
    if (value != null && !slot.type().isInstance(value)) {
      throw new Refused("%s.%s cannot hold an object of %s".formatted(owner, name, value.getClass().getName()));
    }
    Memory.reference(object, slot.offset(), value);
  }
}
