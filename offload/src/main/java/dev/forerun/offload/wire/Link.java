package dev.forerun.offload.wire;

import java.io.BufferedInputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/** One end of a stream of frames (PROTOCOL.md). Any thread may write; one reads. */
public final class Link implements Closeable {
  /** The version of the protocol. Both ends come from one jar, so it only has to differ from others. */
  public static final int VERSION = 1;

  /** The most bytes that a frame's body may have. */
  public static final int MAX_FRAME = 16 << 20;

  private final DataInputStream in;
  private final OutputStream out;
  private final Closeable stream;
  private long sent;
  private long received;
  private long endNanos;
  private boolean ends;

  /** Frames over a pair of streams; close closes the third. */
  public Link(InputStream in, OutputStream out, Closeable stream) {
    this.in = new DataInputStream(new BufferedInputStream(in, 1 << 16));
    this.out = out;
    this.stream = stream;
  }

  /** A frame that was read. */
  public record Received(Type type, In body) {}

  /** Writes a frame in one go. */
  public void send(Type type, Out body) throws IOException {
    byte[] content = body.toBytes();
    byte[] frame = new byte[5 + content.length];
    for (int i = 0; i < 4; i++) {
      frame[i] = (byte) (content.length >> (24 - 8 * i));
    }
    frame[4] = (byte) type.code;
    System.arraycopy(content, 0, frame, 5, content.length);
    synchronized (out) {
      sent += frame.length;
      out.write(frame);
      out.flush();
    }
  }

  /** How many bytes were sent. */
  public long sent() {
    synchronized (out) {
      return sent;
    }
  }

  /** How many bytes were received, for the thread that receives. */
  public long received() {
    return received;
  }

  /** Has the wait for a frame fail with an IOException after a time of System.nanoTime, once the other end sends a heartbeat. */
  public void end(long nanos) {
    ends = true;
    endNanos = nanos;
  }

  /** Waits for the next frame that is not a heartbeat. */
  public Received receive() throws IOException {
    while (true) {
      int length = in.readInt();
      Type type = Type.of(in.readUnsignedByte());
      if (length < 0 || length > MAX_FRAME) {
        throw new Malformed("a frame is over %d bytes".formatted(MAX_FRAME));
      }
      byte[] body = in.readNBytes(length);
      if (body.length < length) {
        throw new IOException("the stream ended within a frame");
      }
      received += 5 + length;
      if (type != Type.PING) {
        return new Received(type, new In(body));
      }
      if (ends && System.nanoTime() - endNanos > 0) {
        throw new IOException("the call takes too long");
      }
    }
  }

  /** Waits until the other end has closed the stream, so that nothing that was sent is cut off. */
  public void awaitEnd() throws IOException {
    in.transferTo(OutputStream.nullOutputStream());
  }

  @Override
  public void close() throws IOException {
    stream.close();
  }
}
