package dev.forerun.runtime;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** The handler's end of its socket, which it inherited as a descriptor. */
final class Connection {
  private static final int PREFIX_BYTES = 8;
  private static final int MAX_HEADER_BYTES = 1 << 20;
  private static final int MAX_PAYLOAD_BYTES = 64 << 20;

  private final DataInputStream in;
  private final OutputStream out;

  /**
   * Takes over a connected socket.
   *
   * @throws ReflectiveOperationException if java.io is not open to this class (--add-opens)
   */
  Connection(int descriptor) throws ReflectiveOperationException {
    Constructor<FileDescriptor> constructor =
        FileDescriptor.class.getDeclaredConstructor(int.class);
    constructor.setAccessible(true);
    FileDescriptor socket = constructor.newInstance(descriptor);
    in = new DataInputStream(new FileInputStream(socket));
    out = new FileOutputStream(socket);
  }

  /** Waits for the next frame; null at the end of the stream. */
  Frame read() throws IOException {
    byte[] prefix = in.readNBytes(PREFIX_BYTES);
    if (prefix.length == 0) {
      return null;
    }
    if (prefix.length < PREFIX_BYTES) {
      throw new EOFException("the stream ended within a frame");
    }
    ByteBuffer sizes = ByteBuffer.wrap(prefix);
    int headerBytes = sizes.getInt(0) & 0xffffff;
    int payloadBytes = sizes.getInt(4);
    if (headerBytes > MAX_HEADER_BYTES || payloadBytes < 0 || payloadBytes > MAX_PAYLOAD_BYTES) {
      throw new IOException("a frame is over the protocol's limits");
    }
    byte[] header = in.readNBytes(headerBytes);
    byte[] payload = in.readNBytes(payloadBytes);
    if (header.length < headerBytes || payload.length < payloadBytes) {
      throw new EOFException("the stream ended within a frame");
    }
    return new Frame(prefix[0], parse(header), payload);
  }

  private static JsonObject parse(byte[] header) {
    if (header.length == 0) {
      return new JsonObject();
    }
    return JsonParser.parseString(new String(header, StandardCharsets.UTF_8)).getAsJsonObject();
  }

  /** Writes a frame in one go. */
  void write(Frame frame) throws IOException {
    byte[] header = new byte[0];
    if (frame.header().size() > 0) {
      header = frame.header().toString().getBytes(StandardCharsets.UTF_8);
    }
    ByteBuffer bytes =
        ByteBuffer.allocate(PREFIX_BYTES + header.length + frame.payload().length);
    bytes.putInt(frame.type() << 24 | header.length).putInt(frame.payload().length);
    out.write(bytes.put(header).put(frame.payload()).array());
  }
}
