// Before anything is drawn: the theme that was chosen, so that nothing flashes.
(() => {
  try {
    document.documentElement.dataset.theme = localStorage.getItem(`covey:${new URL('../../', document.currentScript.src).pathname}:theme`) || 'system';
  } catch { /* as the system says */ }
})();
