// Stands for the package `uc.micro` in the vendored markdown-it: browsers know what is punctuation and what is a symbol.
export const P = /\p{P}/u;
export const S = /\p{S}/u;
