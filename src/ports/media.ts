/** Properties of an image file. */
export interface ImageFacts {
  /** The MIME type of its content. */
  readonly mimeType: string;
  /** Size in pixels as displayed: after its EXIF orientation is applied; of an animation, one frame. */
  readonly width: number;
  readonly height: number;
}

/** A file, with the parts of it that the caller has read already. */
export interface MediaFile {
  /** Size in bytes. */
  readonly size: number;
  /** Reads `length` bytes at `offset`, fewer only at the end. */
  read(offset: number, length: number): Promise<Buffer>;
  /** Its first `HEAD_BYTES` bytes; fewer only if the file is shorter. */
  readonly head: Buffer;
  /** Its last two bytes. */
  readonly tail: Buffer;
  /** Identifies the user of the file: work is scheduled fairly between users. */
  readonly userKey: string;
}

/** Enough for every known signature, and for what precedes the pixels of most images. */
export const HEAD_BYTES = 64 * 1024;

/**
 * Reads files of images, audio and video, which may be malicious. Nothing here blocks the event loop for long, and few
 * operations run at once: those for one user begin in the order of the calls, those for different users in turn.
 */
export interface Media {
  /**
   * Returns the MIME type of the content without parameters; undefined if it is not known. Matroska that browsers
   * record, and play as WebM, is `video/webm`.
   */
  sniff(file: MediaFile): Promise<string | undefined>;
  /**
   * Returns the properties of an image that can be decoded; null for one that cannot, is truncated, or has more than 50
   * million pixels. Damage that decoders ignore is no reason to refuse.
   *
   * @param admit called with the number of pixels before they are decoded. If it rejects, nothing is decoded and the
   *   call rejects with the error. Not called for a plain JPEG (one sequential scan, the usual segments): only its
   *   structure is read, and its thumbnail takes a sixth of the time that other images of its size take
   */
  image(file: MediaFile, admit: (pixels: number) => Promise<void>): Promise<ImageFacts | null>;
  /** Returns the duration of audio or video in milliseconds; undefined if it cannot be determined within 2 seconds. */
  duration(file: MediaFile, mimeType: string): Promise<number | undefined>;
  /**
   * Returns a JPEG of 200x200 pixels: upright, cropped to the middle, with transparency on white. Returns null if the
   * image cannot be decoded.
   */
  thumbnail(image: Buffer): Promise<Buffer | null>;
}
