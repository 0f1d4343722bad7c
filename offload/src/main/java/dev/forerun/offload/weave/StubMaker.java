package dev.forerun.offload.weave;

import static org.objectweb.asm.Opcodes.*;

import dev.forerun.offload.graph.Rules;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Type;

/**
 * Generates the classes whose objects stand for pinned ones. Such a class extends the real one where that is a class of the application
 * or a framework, or one of the JDK that allows it; else it implements the interfaces. Each method calls the server.
 */
public final class StubMaker {
  private static final String STUB = "dev/forerun/offload/graph/Stub";

  private final Map<Class<?>, String> names = new HashMap<>();
  private final Map<String, byte[]> files = new HashMap<>();

  /** The name of the class that stands for objects of a class. */
  public synchronized String nameOf(Class<?> type) {
    return names.computeIfAbsent(type, this::make);
  }

  /** The class file of a generated class; null for another. */
  public synchronized byte[] file(String name) {
    return files.get(name);
  }

  private String make(Class<?> type) {
    Class<?> base = baseOf(type);
    Set<Class<?>> faces = new LinkedHashSet<>();
    for (Class<?> owner = type; owner != null; owner = owner.getSuperclass()) {
      faces(owner, faces);
    }
    faces.removeIf(face -> face.isHidden() || Rules.isJdk(face) && !Rules.isImplementable(face));
    String within = Rules.isJdk(base) ? "" : base.getPackageName();
    for (Class<?> face : faces) {
      if (within.isEmpty() && !Modifier.isPublic(face.getModifiers())) {
        within = face.getPackageName();
      }
    }
    Map<String, Method> methods = new LinkedHashMap<>();
    Set<String> closed = new HashSet<>();
    for (Class<?> owner = base; owner != null; owner = owner.getSuperclass()) {
      methods(owner, within, methods, closed);
    }
    faces.forEach(face -> methods(face, "", methods, closed));
    String name = (within.isEmpty() ? "dev.forerun.offload.stub" : within) + ".Stub$Forerun$" + files.size();
    files.put(name, write(name, base, faces, methods.values(), Rules.hasOpaqueBase(base)));
    return name;
  }

  private static Class<?> baseOf(Class<?> type) {
    Class<?> base = type;
    while (base != Object.class && !mayBeExtended(base)) {
      base = base.getSuperclass();
    }
    return base;
  }

  private static boolean mayBeExtended(Class<?> base) {
    if (base.isHidden() || Proxy.isProxyClass(base) || base == Proxy.class || base.isRecord()) {
      return false;
    }
    String name = base.getName();
    if (name.contains("$$") || name.contains("$HibernateProxy") || name.contains("ByteBuddy")) {
      return false;
    }
    return !Rules.isJdk(base) || Modifier.isPublic(base.getModifiers()) && !Modifier.isFinal(base.getModifiers());
  }

  private static void faces(Class<?> type, Set<Class<?>> found) {
    for (Class<?> face : type.getInterfaces()) {
      found.add(face);
      faces(face, found);
    }
  }

  private static void methods(Class<?> owner, String within, Map<String, Method> found, Set<String> closed) {
    Method[] declared;
    try {
      declared = owner.getDeclaredMethods();
    } catch (NoClassDefFoundError e) {
      return; // a signature names a class of an optional dependency: nothing can call it
    }
    for (Method method : declared) {
      int modifiers = method.getModifiers();
      String key = method.getName() + Type.getMethodDescriptor(method);
      boolean isSeen = (modifiers & (Modifier.PUBLIC | Modifier.PROTECTED)) != 0 || owner.getPackageName().equals(within);
      boolean isObjects = owner == Object.class && !Set.of("equals", "hashCode", "toString", "clone").contains(method.getName());
      if (Modifier.isStatic(modifiers) || Modifier.isPrivate(modifiers) || !isSeen || isObjects || method.getName().equals("finalize")) {
        continue;
      }
      if (Modifier.isFinal(modifiers) && Rules.isJdk(owner)) {
        closed.add(key); // called at bridges
      } else if (!closed.contains(key)) {
        found.putIfAbsent(key, method);
      }
    }
  }

  private static byte[] write(String name, Class<?> base, Set<Class<?>> faces, Iterable<Method> methods, boolean isOpaque) {
    ClassWriter to = new ClassWriter(ClassWriter.COMPUTE_MAXS);
    String[] all = new String[faces.size() + 1];
    all[0] = isOpaque ? STUB + "$Opaque" : STUB;
    int at = 1;
    for (Class<?> face : faces) {
      all[at++] = Type.getInternalName(face);
    }
    to.visit(V17, ACC_PUBLIC | ACC_SUPER | ACC_SYNTHETIC, name.replace('.', '/'), null, Type.getInternalName(base), all);
    for (Method method : methods) {
      String descriptor = Type.getMethodDescriptor(method);
      MethodVisitor code =
          to.visitMethod(method.getModifiers() & (ACC_PUBLIC | ACC_PROTECTED), method.getName(), descriptor, null, null);
      code.visitCode();
      code.visitVarInsn(ALOAD, 0);
      code.visitLdcInsn(Type.getInternalName(method.getDeclaringClass()));
      code.visitLdcInsn(method.getName());
      code.visitLdcInsn(descriptor);
      Code.parameters(code, Type.getArgumentTypes(descriptor), 1);
      Code.hook(
          code,
          "invoke",
          "(Ljava/lang/Object;Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;[Ljava/lang/Object;)Ljava/lang/Object;");
      Code.giveBack(code, Type.getReturnType(descriptor));
      code.visitMaxs(0, 0);
      code.visitEnd();
    }
    to.visitEnd();
    return to.toByteArray();
  }
}
