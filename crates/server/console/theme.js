// The theme is set before anything is painted, so this is no module. Without a choice the system's theme holds.
try {
  const theme = localStorage.getItem('sabir.theme');
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
} catch {
  // Storage may be forbidden; then the system's theme holds.
}
