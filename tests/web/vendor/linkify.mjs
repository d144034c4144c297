// Stands for the package `linkify-it` in the vendored markdown-it: the page never asks for it (`linkify: false`).
export class LinkifyIt {}
