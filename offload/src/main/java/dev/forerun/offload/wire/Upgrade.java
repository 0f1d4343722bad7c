package dev.forerun.offload.wire;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;

/** Opens a stream at the gateway: an HTTP/1.1 request that is answered with 101 Switching Protocols. */
public final class Upgrade {
  private static final int CONNECT_MILLIS = 2000;
  private static final int MAX_HEAD = 16 << 10;

  private Upgrade() {}

  /**
   * Opens a stream.
   *
   * @param server its address: http, or https
   * @param key "uuid:key"
   * @param path with its query
   * @param patience how many milliseconds the handshake of TLS, and the answer, may be silent
   * @param silence how many milliseconds the other end may be silent afterwards; 0: any
   * @throws IOException if the gateway answers otherwise; the message has what it said
   */
  public static Link open(URI server, String key, String path, int patience, int silence) throws IOException {
    Socket socket = connect(server, patience);
    try {
      String basic = Base64.getEncoder().encodeToString(key.getBytes(StandardCharsets.UTF_8));
      String request =
          "GET " + path + " HTTP/1.1\r\nHost: " + server.getRawAuthority() + "\r\nAuthorization: Basic " + basic
              + "\r\nConnection: Upgrade\r\nUpgrade: forerun-offload\r\n\r\n";
      socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
      String head = head(socket.getInputStream());
      if (!head.startsWith("HTTP/1.1 101 ")) {
        throw new IOException("the gateway answers " + head.lines().findFirst().orElse("nothing"));
      }
      socket.setSoTimeout(silence);
      return new Link(socket.getInputStream(), socket.getOutputStream(), socket);
    } catch (IOException | RuntimeException e) {
      socket.close();
      throw e;
    }
  }

  private static Socket connect(URI server, int patience) throws IOException {
    boolean isSecure = "https".equals(server.getScheme());
    int port = server.getPort() >= 0 ? server.getPort() : isSecure ? 443 : 80;
    Socket socket = new Socket();
    try {
      socket.connect(new InetSocketAddress(server.getHost(), port), CONNECT_MILLIS);
      socket.setTcpNoDelay(true);
      socket.setSoTimeout(patience);
      if (!isSecure) {
        return socket;
      }
      SSLSocket secure = (SSLSocket) ((SSLSocketFactory) SSLSocketFactory.getDefault()).createSocket(socket, server.getHost(), port, true);
      SSLParameters parameters = secure.getSSLParameters();
      parameters.setEndpointIdentificationAlgorithm("HTTPS");
      secure.setSSLParameters(parameters);
      secure.startHandshake();
      return secure;
    } catch (IOException | RuntimeException e) {
      socket.close();
      throw e;
    }
  }

  /** Reads up to the empty line, and nothing of what follows. */
  private static String head(InputStream in) throws IOException {
    ByteArrayOutputStream head = new ByteArrayOutputStream();
    while (head.size() < MAX_HEAD) {
      int next = in.read();
      if (next < 0) {
        throw new IOException("the gateway closed the connection");
      }
      head.write(next);
      if (next == '\n' && head.toString(StandardCharsets.ISO_8859_1).endsWith("\r\n\r\n")) {
        return head.toString(StandardCharsets.ISO_8859_1);
      }
    }
    throw new IOException("the gateway's answer is too long");
  }
}
