// Stands for the class `MarkdownIt` in the vendored file: the parser of blocks, and that of the text in them. The page makes
// nodes of their tokens itself, so it needs no renderer, and none of the steps that work on a whole document.
import * as helpers from 'markdown-it/helpers/index.ts';
import ParserBlock from 'markdown-it/parser_block.ts';
import ParserInline from 'markdown-it/parser_inline.ts';

export default class MarkdownIt {
  helpers = helpers;
  block = new ParserBlock();
  inline = new ParserInline();

  constructor(options) { this.options = options; }

  // Addresses stay as they are written. The page judges each when it becomes a link, as a `URL`, which encodes what the net wants encoded.
  validateLink() { return true; }

  normalizeLink(address) { return address; }

  normalizeLinkText(address) { return address; }
}
