data {
  train = idx("images", "labels")
  image : u8[3, 8, 8]
  label : class[10]
}
model {
  w        = weight([3, 8, 8])
  a, b, s  = mixup(w, label)
  c, d, t  = mixup(image * w, label)
  e, f, u  = cutmix(flatten(image), label)
  g, k, v  = cutmix(image, 3)
  l, m, x  = mixup(image, flatten(image * w))
  n, o, z  = mixup(image, label, alpha = 0)
  scores   = linear(flatten(image), 10)
}
train {
  loss      = cross_entropy(scores, label)
  optimizer = adam(1e-3)
}
