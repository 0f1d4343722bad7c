package dev.forerun.offload.weave;

import static org.objectweb.asm.Opcodes.*;

import java.util.Set;
import org.objectweb.asm.Handle;
import org.objectweb.asm.Type;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.InsnList;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.InvokeDynamicInsnNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;

/** Changes the instructions of one method for functions. */
final class Body {
  private static final Set<String> WAITING = Set.of("wait()V", "wait(J)V", "wait(JI)V", "notify()V", "notifyAll()V");

  private final String owner;
  private final MethodNode method;
  private final Names names;
  private final Bridges bridges;

  Body(String owner, MethodNode method, Names names, Bridges bridges) {
    this.owner = owner;
    this.method = method;
    this.names = names;
    this.bridges = bridges;
  }

  void weave() {
    boolean isBorn = !method.name.equals("<init>"); // until the call of another constructor "this" is nothing that can be handed on
    int open = 0;
    for (AbstractInsnNode at : method.instructions.toArray()) {
      if (at.getOpcode() == NEW) {
        open++;
      } else if (at instanceof MethodInsnNode call && call.name.equals("<init>")) {
        if (open == 0) {
          isBorn = true;
        } else {
          open--;
        }
      }
      one(at, isBorn);
    }
  }

  private void one(AbstractInsnNode at, boolean isBorn) {
    switch (at.getOpcode()) {
      case GETFIELD, PUTFIELD -> field((FieldInsnNode) at, isBorn);
      case GETSTATIC -> {
        if (isVolatile((FieldInsnNode) at)) {
          before(at, code -> Code.hook(code, "sync", "()V"));
        }
      }
      case PUTSTATIC -> {
        if (isVolatile((FieldInsnNode) at)) {
          after(at, code -> Code.hook(code, "sync", "()V"));
        }
      }
      case MONITORENTER -> before(at, code -> dupAnd(code, "enter"));
      case MONITOREXIT -> before(at, code -> dupAnd(code, "exit"));
      case AASTORE -> before(at, code -> dupAnd(code, "guard"));
      case ARETURN -> {
        if (!Calls.isPlain(Type.getReturnType(method.desc))) {
          before(at, code -> dupAnd(code, "guard"));
        }
      }
      case INVOKEDYNAMIC -> dynamic((InvokeDynamicInsnNode) at);
      case INVOKEVIRTUAL, INVOKEINTERFACE, INVOKESTATIC, INVOKESPECIAL -> call((MethodInsnNode) at);
      default -> {}
    }
  }

  private interface Coded {
    void write(MethodNode code);
  }

  private static InsnList list(Coded coded) {
    MethodNode code = new MethodNode();
    coded.write(code);
    return code.instructions;
  }

  private void before(AbstractInsnNode at, Coded coded) {
    method.instructions.insertBefore(at, list(coded));
  }

  private void after(AbstractInsnNode at, Coded coded) {
    method.instructions.insert(at, list(coded));
  }

  private static void dupAnd(MethodNode code, String hook) {
    code.visitInsn(DUP);
    Code.hook(code, hook, "(Ljava/lang/Object;)V");
  }

  private boolean isVolatile(FieldInsnNode at) {
    return names.isVolatile(at.owner, at.name);
  }

  private void field(FieldInsnNode at, boolean isBorn) {
    boolean reads = at.getOpcode() == GETFIELD;
    Class<?> type = names.type(at.owner);
    if (type == null ? at.owner.startsWith("java/") : Names.isJdk(type)) {
      fieldOfJdk(at, reads);
    } else if (reads) {
      before(
          at,
          code -> {
            if (isVolatile(at)) {
              Code.hook(code, "sync", "()V");
            }
            code.visitInsn(DUP);
            named(code, at, "touch");
          });
    } else if (isBorn) {
      written(at);
    }
  }

  /** A field of a JDK class: a stand-in's is empty, and none may be stored there. */
  private void fieldOfJdk(FieldInsnNode at, boolean reads) {
    before(
        at,
        code -> {
          if (reads) {
            dupAnd(code, "guardField");
            return;
          }
          boolean isWide = Type.getType(at.desc).getSize() == 2;
          if (!Calls.isPlain(Type.getType(at.desc))) {
            dupAnd(code, "guard");
          }
          code.visitInsn(isWide ? DUP2_X1 : SWAP);
          if (isWide) {
            code.visitInsn(POP2);
          }
          dupAnd(code, "guardField");
          code.visitInsn(isWide ? DUP_X2 : SWAP);
          if (isWide) {
            code.visitInsn(POP);
          }
        });
  }

  /** Has the object on the stack once more below, and tells after the write that it was written to. */
  private void written(FieldInsnNode at) {
    boolean isWide = Type.getType(at.desc).getSize() == 2;
    before(
        at,
        code -> {
          if (isWide) {
            code.visitInsn(DUP2_X1);
            code.visitInsn(POP2);
            code.visitInsn(DUP_X2);
            code.visitInsn(DUP_X2);
            code.visitInsn(POP);
          } else {
            code.visitInsn(SWAP);
            code.visitInsn(DUP_X1);
            code.visitInsn(SWAP);
          }
        });
    after(
        at,
        code -> {
          named(code, at, "stored");
          if (isVolatile(at)) {
            Code.hook(code, "sync", "()V");
          }
        });
  }

  private static void named(MethodNode code, FieldInsnNode at, String hook) {
    code.visitLdcInsn(at.owner);
    code.visitLdcInsn(at.name);
    Code.hook(code, hook, "(Ljava/lang/Object;Ljava/lang/String;Ljava/lang/String;)V");
  }

  private void call(MethodInsnNode at) {
    boolean isSpecial = at.getOpcode() == INVOKESPECIAL;
    if (at.getOpcode() == INVOKEVIRTUAL && at.name.equals("getClass") && at.desc.equals("()Ljava/lang/Class;")) {
      replace(at, "classOf", "(Ljava/lang/Object;)Ljava/lang/Class;");
    } else if (at.getOpcode() == INVOKEVIRTUAL && WAITING.contains(at.name + at.desc)) {
      replace(at, at.name, "(Ljava/lang/Object;" + at.desc.substring(1));
    } else if (at.owner.equals("java/lang/System") && at.name.equals("identityHashCode")) {
      replace(at, "identityHashCode", at.desc);
    } else if (at.owner.equals("java/lang/Thread") && at.name.equals("holdsLock")) {
      replace(at, "holdsLock", at.desc);
    } else if (at.owner.equals("java/lang/Thread") && at.name.equals("sleep") && at.desc.startsWith("(J")) {
      replace(at, "sleep", at.desc);
    } else if (at.owner.startsWith("[") || !names.reachesJdk(at.owner, at.name, at.desc)) {
      return;
    } else if (isSpecial) {
      special(at);
    } else if (at.getOpcode() != INVOKESTATIC && !Calls.isPlain(at.owner) || hasReference(at.desc)
        || Calls.isRefused(at.owner, at.name) || Calls.isOnServer(at.owner, at.name)) {
      Bridges.Call bridge = bridges.to(at.getOpcode(), at.owner, at.name, at.desc, at.itf);
      MethodInsnNode call = new MethodInsnNode(INVOKESTATIC, bridge.owner(), bridge.name(), bridge.descriptor(), bridge.isInterface());
      method.instructions.set(at, call);
    }
  }

  private void replace(MethodInsnNode at, String hook, String descriptor) {
    method.instructions.set(at, new MethodInsnNode(INVOKESTATIC, Code.HOOKS, hook, descriptor, false));
  }

  private static boolean hasReference(String descriptor) {
    for (Type type : Type.getArgumentTypes(descriptor)) {
      if (!Calls.isPlain(type)) {
        return true;
      }
    }
    return false;
  }

  /** A constructor of the JDK, or a method of a superclass in it: only its parameters can be an opaque stand-in. */
  private void special(MethodInsnNode at) {
    if (Calls.isRefused(at.owner, at.name)) {
      before(
          at,
          code -> {
            code.visitLdcInsn(at.owner.replace('/', '.') + "." + at.name);
            Code.hook(code, "refuse", "(Ljava/lang/String;)V");
          });
    }
    if (hasReference(at.desc)) {
      guardParameters(at, Type.getArgumentTypes(at.desc));
    }
  }

  /** Guards what is on the stack: it is put into variables behind all others, and back. */
  private void guardParameters(AbstractInsnNode at, Type[] types) {
    int first = method.maxLocals;
    before(
        at,
        code -> {
          int behind = first;
          for (Type type : types) {
            behind += type.getSize();
          }
          for (int i = types.length - 1; i >= 0; i--) {
            behind -= types[i].getSize();
            if (!Calls.isPlain(types[i])) {
              dupAnd(code, "guard");
            }
            code.visitVarInsn(types[i].getOpcode(ISTORE), behind);
          }
          Code.load(code, types, first);
        });
  }

  private void dynamic(InvokeDynamicInsnNode at) {
    boolean isLambda = ServerWeaver.isLambda(at.bsm);
    boolean guarded = true;
    if (isLambda) {
      Handle target = (Handle) at.bsmArgs[1];
      guarded = !target.getOwner().equals(owner) && names.reachesJdk(target.getOwner(), target.getName(), target.getDesc());
      boolean isOther = Calls.isRefused(target.getOwner(), target.getName()) || Calls.isReplaced(target.getName());
      if (guarded && isOther || Calls.isOnServer(target.getOwner(), target.getName())) {
        before(
            at,
            code -> {
              code.visitLdcInsn(target.getOwner().replace('/', '.') + "::" + target.getName());
              Code.hook(code, "refuse", "(Ljava/lang/String;)V");
            });
      }
    }
    if (guarded && hasReference(at.desc)) {
      guardParameters(at, Type.getArgumentTypes(at.desc));
    }
    if (isLambda) {
      AbstractInsnNode made =
          list(code -> ServerWeaver.remakeable(code, at.name, at.desc, at.bsmArgs)).getFirst();
      method.instructions.set(at, made);
    }
  }
}
