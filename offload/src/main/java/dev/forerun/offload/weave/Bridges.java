package dev.forerun.offload.weave;

import static org.objectweb.asm.Opcodes.*;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import org.objectweb.asm.Label;
import org.objectweb.asm.Type;
import org.objectweb.asm.tree.MethodNode;

/** The bridges of a class to methods of the JDK: private static methods whose first parameter is the receiver. */
final class Bridges {
  private final String owner;
  private final boolean isInterface;
  private final Map<String, MethodNode> methods = new LinkedHashMap<>();

  Bridges(String owner, boolean isInterface) {
    this.owner = owner;
    this.isInterface = isInterface;
  }

  Collection<MethodNode> methods() {
    return methods.values();
  }

  /** A call of a bridge in the place of another call. */
  record Call(String owner, String name, String descriptor, boolean isInterface) {}

  /** The bridge for a call; it is made if there is none yet. */
  Call to(int opcode, String called, String name, String descriptor, boolean ofInterface) {
    String key = opcode + called + "." + name + descriptor;
    MethodNode bridge = methods.get(key);
    if (bridge == null) {
      bridge = make(opcode, called, name, descriptor, ofInterface);
      methods.put(key, bridge);
    }
    return new Call(owner, bridge.name, bridge.desc, isInterface);
  }

  private MethodNode make(int opcode, String called, String name, String descriptor, boolean ofInterface) {
    boolean isStatic = opcode == INVOKESTATIC;
    Type[] parameters = Type.getArgumentTypes(descriptor);
    Type result = Type.getReturnType(descriptor);
    String type = isStatic ? descriptor : "(" + Type.getObjectType(called).getDescriptor() + descriptor.substring(1);
    MethodNode to =
        new MethodNode(ACC_PRIVATE | ACC_STATIC | ACC_SYNTHETIC, FunctionWeaver.ADDED + methods.size() + "$" + name, type, null, null);
    to.visitCode();
    int first = isStatic ? 0 : 1;
    if (Calls.isRefused(called, name)) {
      to.visitLdcInsn(called.replace('/', '.') + "." + name);
      Code.hook(to, "refuse", "(Ljava/lang/String;)V");
    }
    if (isStatic && Calls.isOnServer(called, name)) {
      onServer(to, called, name, descriptor, "invokeStatic", parameters, 0);
      Code.giveBack(to, result);
      to.visitMaxs(0, 0);
      return to;
    }
    if (!isStatic) {
      Label here = new Label();
      to.visitVarInsn(ALOAD, 0);
      Code.hook(to, "isAway", "(Ljava/lang/Object;)Z");
      to.visitJumpInsn(IFEQ, here);
      to.visitVarInsn(ALOAD, 0);
      onServer(to, called, name, descriptor, "invoke", parameters, 1);
      Code.giveBack(to, result);
      to.visitLabel(here);
      to.visitFrame(F_SAME, 0, null, 0, null);
      to.visitVarInsn(ALOAD, 0);
    }
    guards(to, parameters, first, Calls.isByField(called));
    Code.load(to, parameters, first);
    to.visitMethodInsn(opcode, called, name, descriptor, ofInterface);
    to.visitInsn(result.getOpcode(IRETURN));
    to.visitMaxs(0, 0);
    return to;
  }

  private static void onServer(MethodNode to, String called, String name, String descriptor, String hook, Type[] parameters, int first) {
    to.visitLdcInsn(called);
    to.visitLdcInsn(name);
    to.visitLdcInsn(descriptor);
    Code.parameters(to, parameters, first);
    String receiver = first == 1 ? "Ljava/lang/Object;" : "";
    Code.hook(
        to, hook, "(" + receiver + "Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;[Ljava/lang/Object;)Ljava/lang/Object;");
  }

  private static void guards(MethodNode to, Type[] parameters, int first, boolean byField) {
    int variable = first;
    for (Type parameter : parameters) {
      if (!Calls.isPlain(parameter)) {
        to.visitVarInsn(ALOAD, variable);
        Code.hook(to, byField ? "guardField" : "guard", "(Ljava/lang/Object;)V");
      }
      variable += parameter.getSize();
    }
  }
}
