/* Light or dark, before anything is painted: as the system has it, unless the reader chose.  Not a module,
 * since those run after the first paint. */
(() => {
  const NAME = 'plumb-theme';
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const root = document.documentElement;
  let chosen = null;
  try {
    chosen = localStorage.getItem(NAME);
  } catch { /* no storage: as the system has it */ }

  const system = () => (dark.matches ? 'dark' : 'light');
  const current = () => chosen ?? system();
  const apply = () => { root.dataset.theme = current(); };

  /* The other one; what is the system's own choice is followed from then on. */
  globalThis.plumbSwitchTheme = () => {
    const next = current() === 'dark' ? 'light' : 'dark';
    chosen = next === system() ? null : next;
    try {
      if (chosen) localStorage.setItem(NAME, chosen);
      else localStorage.removeItem(NAME);
    } catch { /* then until the page is closed */ }
    apply();
  };
  dark.addEventListener('change', apply);
  if (chosen !== 'dark' && chosen !== 'light') chosen = null;
  apply();
})();
