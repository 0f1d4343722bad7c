package dev.forerun.offload.graph;

import dev.forerun.offload.wire.Malformed;
import dev.forerun.offload.wire.Refused;
import java.lang.invoke.LambdaMetafactory;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandleInfo;
import java.lang.invoke.MethodHandles.Lookup;
import java.lang.invoke.MethodType;
import java.lang.invoke.SerializedLambda;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;

/** Lambdas of woven classes, which are all serializable: what SerializedLambda says makes them again. */
final class Lambdas {
  /** The strings and the kind of a SerializedLambda, in this order. */
  record Form(String capturing, String face, String name, String signature, String owner, String method, String type, String instantiated, int kind) {}

  private final ClassLoader loader;
  private final Map<Form, MethodHandle> factories = new HashMap<>();

  Lambdas(ClassLoader loader) {
    this.loader = loader;
  }

  static boolean isLambda(Class<?> type) {
    if (!type.isHidden() || !type.getName().contains("$$Lambda")) {
      return false;
    }
    try {
      type.getDeclaredMethod("writeReplace");
      return true;
    } catch (NoSuchMethodException e) {
      return false;
    }
  }

  static SerializedLambda serialized(Object lambda) {
    try {
      Method replace = Memory.open(lambda.getClass().getDeclaredMethod("writeReplace"));
      return (SerializedLambda) replace.invoke(lambda);
    } catch (ReflectiveOperationException e) {
      throw new Refused("the lambda %s cannot be packed: %s".formatted(lambda.getClass().getName(), e));
    }
  }

  static Form form(SerializedLambda s) {
    return new Form(
        s.getCapturingClass(), s.getFunctionalInterfaceClass(), s.getFunctionalInterfaceMethodName(),
        s.getFunctionalInterfaceMethodSignature(), s.getImplClass(), s.getImplMethodName(), s.getImplMethodSignature(),
        s.getInstantiatedMethodType(), s.getImplMethodKind());
  }

  /** Makes a lambda again. */
  Object make(Form form, Object[] captured) {
    try {
      MethodHandle factory = factories.get(form);
      if (factory == null) {
        factory = factory(form, captured.length);
        factories.put(form, factory);
      }
      return factory.invokeWithArguments(captured);
    } catch (Refused | Malformed e) {
      throw e;
    } catch (Throwable e) {
      throw new Refused("the lambda %s.%s cannot be made again: %s".formatted(form.owner(), form.method(), e));
    }
  }

  private MethodHandle factory(Form form, int captured) throws Exception {
    Lookup lookup = Memory.ALL.in(named(form.capturing()));
    Class<?> owner = named(form.owner());
    MethodType type = MethodType.fromMethodDescriptorString(form.type(), loader);
    MethodHandle target =
        switch (form.kind()) {
          case MethodHandleInfo.REF_invokeStatic -> lookup.findStatic(owner, form.method(), type);
          case MethodHandleInfo.REF_newInvokeSpecial -> lookup.findConstructor(owner, type);
          case MethodHandleInfo.REF_invokeSpecial -> lookup.findSpecial(owner, form.method(), type, named(form.capturing()));
          default -> lookup.findVirtual(owner, form.method(), type);
        };
    if (captured > target.type().parameterCount()) {
      throw new Malformed("a lambda captures too much");
    }
    MethodType factory =
        MethodType.methodType(named(form.face()), target.type().parameterList().subList(0, captured));
    return LambdaMetafactory.altMetafactory(
            lookup,
            form.name(),
            factory,
            MethodType.fromMethodDescriptorString(form.signature(), loader),
            target,
            MethodType.fromMethodDescriptorString(form.instantiated(), loader),
            LambdaMetafactory.FLAG_SERIALIZABLE)
        .getTarget();
  }

  private Class<?> named(String internal) throws ClassNotFoundException {
    return Class.forName(internal.replace('/', '.'), true, loader);
  }
}
