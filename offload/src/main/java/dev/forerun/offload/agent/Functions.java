package dev.forerun.offload.agent;

import dev.forerun.offload.wire.Link;
import java.io.IOException;

/** Where calls are offloaded to. */
public interface Functions {
  /** Has a function begin, and returns the link to it. IOException: there is none now. */
  Link open() throws IOException;
}
