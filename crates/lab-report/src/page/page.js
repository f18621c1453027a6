// Hovering: the nearest point of a picture shows its figures, and its line stands out.
// Without this script the points still carry them as titles.
const tip = document.getElementById('tip');
const REACH = 48; // pixels around a point in which it answers

for (const plot of document.querySelectorAll('svg.plot')) {
  const points = [...plot.querySelectorAll('.pt')].map((node) => {
    const title = node.querySelector('title');
    const text = title.textContent;
    title.remove(); // the browser's own tooltip would cover ours
    return { line: node.closest('.s'), x: +node.dataset.x, y: +node.dataset.y, text };
  });
  const name = plot.querySelector(':scope > title');
  plot.setAttribute('aria-label', name.textContent);
  plot.removeAttribute('aria-labelledby');
  name.remove();

  const leave = () => {
    tip.hidden = true;
    plot.classList.remove('on');
    for (const p of points) p.line.classList.remove('on');
  };
  const show = (event) => {
    leave();
    const label = event.target.closest('.label');
    const onLabel = label ? label.closest('.s') : null;
    const toScreen = plot.getScreenCTM();
    let best = null;
    for (const p of points) {
      if (onLabel && p.line !== onLabel) continue;
      const at = new DOMPoint(p.x, p.y).matrixTransform(toScreen);
      const far = Math.hypot(at.x - event.clientX, at.y - event.clientY);
      if (!best || far < best.far) best = { p, at, far };
    }
    if (!best) return;
    if (onLabel || best.far <= REACH) {
      plot.classList.add('on');
      best.p.line.classList.add('on');
    }
    if (best.far > REACH) return;
    tip.textContent = best.p.text;
    tip.hidden = false;
    const width = tip.offsetWidth, height = tip.offsetHeight;
    const left = Math.min(best.at.x + 14, document.documentElement.clientWidth - width - 8);
    const above = best.at.y - height - 12;
    tip.style.left = Math.max(8, left) + scrollX + 'px';
    tip.style.top = (above > 8 ? above : best.at.y + 14) + scrollY + 'px';
  };
  plot.addEventListener('pointermove', show);
  plot.addEventListener('pointerdown', show);
  plot.addEventListener('pointerleave', leave);
}

addEventListener('beforeprint', () => {
  for (const folded of document.querySelectorAll('details')) folded.open = true;
});

const save = document.getElementById('save');
save.hidden = false;
save.addEventListener('click', () => {
  const text = document.getElementById('results').textContent;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  link.download = save.dataset.file;
  link.click();
  URL.revokeObjectURL(link.href);
});
