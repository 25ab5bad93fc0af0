data {
  train = idx("a", "b")
  image : u8[3, 8, 8]
  label : class[10]
}
model {
  a      = rotate(image, 270)
  b      = random_resized_crop(image, scale = [0.5, 2])
  c      = random_resized_crop(image, 4, ratio = 2)
  d      = random_resized_crop(image, [4, 4, 3])
  e      = random_resized_crop(image, ratio = [2, 1])
  f      = random_resized_crop(image, scale = ["0.5", 1])
  g      = random_crop(image, 1, mode = "reflekt")
  k      = random_crop(image, 1, mode = 1)
  h      = rotate(conv2d(image, 3, 3), 10)
  scores = linear(flatten(h), 10)
}
train {
  loss      = cross_entropy(scores, label)
  optimizer = adam(1e-3)
}
