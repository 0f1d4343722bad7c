package dev.forerun.offload.function;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** Standard output of the function: what a call prints goes to the application's, the rest stays. */
final class Output extends OutputStream {
  private final int number;
  private final PrintStream own;

  private Output(int number, PrintStream own) {
    this.number = number;
    this.own = own;
  }

  /** Puts itself in the place of both streams of this process. */
  static void install() {
    System.setOut(new PrintStream(new Output(1, System.out), true, StandardCharsets.UTF_8));
    System.setErr(new PrintStream(new Output(2, System.err), true, StandardCharsets.UTF_8));
  }

  @Override
  public void write(int one) throws IOException {
    write(new byte[] {(byte) one}, 0, 1);
  }

  @Override
  public void write(byte[] bytes, int from, int count) throws IOException {
    Realm realm = Hooks.realm;
    if (count > 0 && (realm == null || !realm.print(number, new String(bytes, from, count, StandardCharsets.UTF_8)))) {
      own.write(bytes, from, count);
    }
  }

  @Override
  public void flush() {
    own.flush();
  }
}
