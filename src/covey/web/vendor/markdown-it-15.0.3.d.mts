// The vendored parser has types of its own; the page needs a few of its functions, and checks what they give.
declare const MarkdownIt: any;
export default MarkdownIt;
