// The contrast of every visible text with its background, in ascending order.
() => {
  const parse = (text) => {
    const numbers = text.match(/[\d.]+/g).map(Number);
    return { rgb: numbers.slice(0, 3), alpha: numbers[3] ?? 1 };
  };
  const over = (top, below) => top.rgb.map((value, k) => value * top.alpha + below[k] * (1 - top.alpha));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.alpha > 0) layers.push(colour);
      if (colour.alpha === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const text = node.data.trim();
    if (!text || ["SCRIPT", "NOSCRIPT", "TITLE", "title"].includes(element.tagName)) continue;
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(element);
    const ink = parse(element instanceof SVGElement ? style.fill : style.color);
    const ground = behind(element);
    const [high, low] = [luminance(over(ink, ground)), luminance(ground)].sort((a, b) => b - a);
    found.push({ text, where: element.className.baseVal ?? element.className, ratio: (high + 0.05) / (low + 0.05) });
  }
  for (const field of document.querySelectorAll("textarea, input[type=text], select")) {
    if (!field.checkVisibility()) continue;
    const ground = behind(field);
    const [high, low] = [luminance(over(parse(getComputedStyle(field).color), ground)), luminance(ground)].sort((a, b) => b - a);
    found.push({ text: field.value, where: field.tagName, ratio: (high + 0.05) / (low + 0.05) });
  }
  return found.sort((a, b) => a.ratio - b.ratio);
}
