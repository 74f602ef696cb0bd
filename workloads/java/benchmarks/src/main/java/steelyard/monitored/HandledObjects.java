package steelyard.monitored;

/**
 * The objects that calls handle: one each, new for every call or from a pool.
 *
 * <p>New ones stay reachable until {@link #KEPT} more were made, so that a collection has survivors to copy, as it
 * has in a service that works on many requests at a time. A pool is those same objects, made once.
 */
public final class HandledObjects {
  /** Number of objects that are reachable at a time. */
  static final int KEPT = 4096;

  private final byte[][] kept = new byte[KEPT][];
  private final int bytes;
  private final boolean isPooled;
  private int turn;

  /**
   * @param bytes size of an object [bytes], 1 or more
   * @param isPooled whether objects are used again
   */
  public HandledObjects(int bytes, boolean isPooled) {
    this.bytes = bytes;
    this.isPooled = isPooled;
    for (int place = 0; place < KEPT; place++) {
      kept[place] = new byte[bytes];
    }
  }

  /** Takes the object of this call and changes it; gives what it then holds. */
  public long handle() {
    turn = (turn + 1) & (KEPT - 1);
    if (!isPooled) {
      kept[turn] = new byte[bytes];
    }
    byte[] object = kept[turn];
    object[0]++;
    return object[0];
  }
}
