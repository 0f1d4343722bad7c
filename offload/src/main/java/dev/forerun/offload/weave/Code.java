package dev.forerun.offload.weave;

import static org.objectweb.asm.Opcodes.*;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Type;

/** Pieces of code that several weavers write. */
final class Code {
  static final String HOOKS = "dev/forerun/offload/function/Hooks";
  private static final String[] BOXES = {
    null, "java/lang/Boolean", "java/lang/Character", "java/lang/Byte", "java/lang/Short", "java/lang/Integer",
    "java/lang/Float", "java/lang/Long", "java/lang/Double"
  };

  private Code() {}

  static void hook(MethodVisitor to, String name, String descriptor) {
    to.visitMethodInsn(INVOKESTATIC, HOOKS, name, descriptor, false);
  }

  static void number(MethodVisitor to, int value) {
    to.visitIntInsn(SIPUSH, value);
  }

  /** An array of parameters, primitives boxed, from local variables. */
  static void parameters(MethodVisitor to, Type[] types, int first) {
    number(to, types.length);
    to.visitTypeInsn(ANEWARRAY, "java/lang/Object");
    int variable = first;
    for (int i = 0; i < types.length; i++) {
      to.visitInsn(DUP);
      number(to, i);
      to.visitVarInsn(types[i].getOpcode(ILOAD), variable);
      box(to, types[i]);
      to.visitInsn(AASTORE);
      variable += types[i].getSize();
    }
  }

  /** Boxes a primitive on the stack. */
  static void box(MethodVisitor to, Type type) {
    if (type.getSort() <= Type.DOUBLE) {
      String box = BOXES[type.getSort()];
      to.visitMethodInsn(INVOKESTATIC, box, "valueOf", "(" + type.getDescriptor() + ")L" + box + ";", false);
    }
  }

  static void load(MethodVisitor to, Type[] types, int first) {
    int variable = first;
    for (Type type : types) {
      to.visitVarInsn(type.getOpcode(ILOAD), variable);
      variable += type.getSize();
    }
  }

  /** Returns the object on the stack as a type: unboxed, or cast. */
  static void giveBack(MethodVisitor to, Type type) {
    int sort = type.getSort();
    if (sort == Type.VOID) {
      to.visitInsn(POP);
    } else if (sort <= Type.DOUBLE) {
      to.visitTypeInsn(CHECKCAST, BOXES[sort]);
      to.visitMethodInsn(INVOKEVIRTUAL, BOXES[sort], type.getClassName() + "Value", "()" + type.getDescriptor(), false);
    } else if (!type.getInternalName().equals("java/lang/Object")) {
      to.visitTypeInsn(CHECKCAST, type.getInternalName());
    }
    to.visitInsn(type.getOpcode(IRETURN));
  }
}
