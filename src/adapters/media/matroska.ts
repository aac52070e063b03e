import { CLUSTER, elementOf, SEGMENT, TRACK_ENTRY, TRACKS } from './ebml.ts';

const CODEC_ID = 0x86;
/** Elements whose content is read; the content of all others is skipped. */
const MASTERS: ReadonlySet<number> = new Set([SEGMENT, TRACKS, TRACK_ENTRY]);

/** The codecs that browsers record into WebM, or into Matroska under the name of WebM. */
const BROWSER_CODECS =
  /^(?:V_VP8|V_VP9|V_AV1|V_MPEG4\/ISO\/AVC|V_MPEGH\/ISO\/HEVC|A_OPUS|A_VORBIS|A_AAC|A_PCM\/INT\/LIT|A_PCM\/FLOAT\/IEEE)\0*$/;

/**
 * Whether a Matroska file is what browsers record: it has tracks, all of them with codecs that browsers record. WebM is
 * the same container with fewer codecs, and browsers play these files as WebM.
 *
 * @param head its first bytes, with all tracks
 */
export function isRecordedByBrowser(head: Buffer): boolean {
  let tracks = 0;
  for (let offset = 0; offset < head.length;) {
    const element = elementOf(head.subarray(offset, offset + 12));
    if (element === null || element.id === CLUSTER) break;
    const content = offset + element.head;
    if (element.id === CODEC_ID) {
      if (!BROWSER_CODECS.test(head.toString('latin1', content, content + element.size))) return false;
      tracks += 1;
    }
    offset = MASTERS.has(element.id) ? content : content + element.size;
  }
  return tracks > 0;
}
