// Stands for the rules of markdown-it that the page never turns on (`html` and `linkify`): they apply nowhere.
export default () => false;
